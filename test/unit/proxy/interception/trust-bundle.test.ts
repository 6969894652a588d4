import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import { beforeAll, describe, expect, test } from "vitest";
import { makeAuthority } from "../../../../proxy/interception/authority.ts";
import { mergeTrust } from "../../../../proxy/interception/trust-bundle.ts";

const [ours, users, systems] = ["", "", ""].map(() => ({ certPem: "", keyPem: "" }));
if (ours === undefined || users === undefined || systems === undefined) throw new Error("three authorities");

beforeAll(async () => {
  for (const authority of [ours, users, systems]) Object.assign(authority, await makeAuthority());
});

const countBlocks = (pem: string): number => pem.match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0;
const firstOf = (pem: string): string => new X509Certificate(pem).fingerprint256;

describe("a trust bundle", () => {
  test("holds ours first, then the user's, then the system's", () => {
    const bundle = mergeTrust({ own: ours.certPem, user: [users.certPem], system: systems.certPem });
    expect(bundle).toBe([ours, users, systems].map(({ certPem }) => new X509Certificate(certPem).toString()).join(""));
    expect(firstOf(bundle)).toBe(firstOf(ours.certPem));
  });

  test("holds each certificate once, however it is written", () => {
    const crlf = users.certPem.replaceAll("\n", "\r\n");
    const oneLine = users.certPem.replaceAll(/(?<=[A-Za-z0-9+/=])\n(?=[A-Za-z0-9+/=])/g, "");
    const commented = `# the site's own\nSubject: Site\n${users.certPem}`;
    const old = users.certPem.replaceAll("CERTIFICATE", "X509 CERTIFICATE");
    expect(countBlocks(mergeTrust({ own: ours.certPem, user: [users.certPem, crlf, oneLine, commented, old], system: users.certPem + ours.certPem }))).toBe(2);
  });

  test("leaves out keys, comments and blocks that no program can read", () => {
    const broken = users.certPem.replace(/\nMII[A-Za-z0-9+/]{20}/, "\nAAAA");
    const bundle = mergeTrust({ own: ours.certPem, user: [`${users.keyPem}\n# note\n${broken}${users.certPem}`, "not PEM at all", ""], system: systems.certPem });
    expect(bundle).not.toContain("PRIVATE");
    expect(bundle).not.toContain("note");
    expect(countBlocks(bundle)).toBe(3);
  });

  test("holds all public roots of a system", () => {
    expect(countBlocks(mergeTrust({ own: ours.certPem, user: [], system: rootCertificates.join("\n") }))).toBe(new Set(rootCertificates).size + 1);
  });
});
