import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { connect, type SecureContext, TLSSocket } from "node:tls";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { DecisionEntry } from "../../../../policy/decision-record.ts";
import { ConfigError } from "../../../../policy/errors.ts";
import { type Host, parseHost } from "../../../../policy/host-name.ts";
import { makeAuthority } from "../../../../proxy/interception/authority.ts";
import { CertificateLog } from "../../../../proxy/interception/certificate-log.ts";
import { LeafCache } from "../../../../proxy/interception/leaf-cache.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

afterEach(() => void vi.useRealTimers());

const hostOf = (text: string): Host => {
  const parsed = parseHost(text);
  if (!parsed.ok) throw new Error(parsed.complaint.what);
  return parsed.value;
};

/** The certificate that a client gets of a server with this context; an error where it does not trust it. */
async function show(context: SecureContext, name: string, ca?: string): Promise<X509Certificate> {
  const server = createServer((raw) => void new TLSSocket(raw, { isServer: true, secureContext: context }).on("error", () => undefined));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const where = server.address();
  if (where === null || typeof where === "string") throw new Error("no port");
  const named = hostOf(name).kind === "name" ? { servername: name } : {};
  const socket = connect({ host: "127.0.0.1", port: where.port, ...named, ca, rejectUnauthorized: ca !== undefined, checkServerIdentity: (_host, seen) => checkName(name, seen.subjectaltname) });
  try {
    await once(socket, "secureConnect");
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) throw new Error("no certificate");
    return certificate;
  } finally {
    socket.destroy();
    server.close();
  }
}

const checkName = (name: string, seen: string | undefined): Error | undefined => ([`DNS:${name}`, `IP Address:${name}`].includes(seen ?? "") ? undefined : new Error(`for ${seen}`));

async function makeCache({ days, maxKept }: { days?: number; maxKept?: number } = {}) {
  const authority = await makeAuthority(days);
  const issued: string[] = [];
  const cache = new LeafCache({ authority, onIssued: (name) => issued.push(name), ...(maxKept === undefined ? {} : { maxKept }) });
  return { authority, issued, cache };
}

describe("certificates of intercepted hosts", () => {
  test.each(["api.example.com", "192.0.2.7", "under_score.example.com", `${"a".repeat(63)}.${"b".repeat(63)}.example.com`])("%s has a certificate for itself alone, which clients of the authority trust", async (name) => {
    const { authority, cache } = await makeCache();
    const certificate = await show(await cache.contextFor(hostOf(name)), name, authority.certPem);
    expect(certificate.subjectAltName).toBe(hostOf(name).kind === "name" ? `DNS:${name}` : `IP Address:${name}`);
    expect(certificate.ca).toBe(false);
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  });

  test("an IPv6 address has a certificate for that address", async () => {
    const { cache } = await makeCache();
    expect((await show(await cache.contextFor(hostOf("2001:db8::1")), "2001:db8::1")).subjectAltName).toBe("IP Address:2001:DB8:0:0:0:0:0:1");
  });

  test("clients of another authority refuse it", async () => {
    const { cache } = await makeCache();
    const foreign = await makeAuthority();
    await expect(show(await cache.contextFor(hostOf("a.example")), "a.example", foreign.certPem)).rejects.toThrow(/unable to verify|certificate signature|self-signed/);
  });

  test("a host is given one certificate, however many ask at once", async () => {
    const { cache, issued } = await makeCache();
    const contexts = await Promise.all(Array.from({ length: 20 }, () => cache.contextFor(hostOf("a.example"))));
    expect(new Set(contexts).size).toBe(1);
    expect(issued).toEqual(["a.example"]);
  });

  test("only so many are kept, and those used last stay", async () => {
    const { cache, issued } = await makeCache({ maxKept: 3 });
    for (const name of ["a.example", "b.example", "c.example", "a.example", "d.example", "a.example"]) await cache.contextFor(hostOf(name));
    expect(cache.size).toBe(3);
    await cache.contextFor(hostOf("b.example"));
    expect(issued).toEqual(["a.example", "b.example", "c.example", "d.example", "b.example"]);
  });

  test("is valid from an hour ago for a week", async () => {
    const { cache } = await makeCache();
    const certificate = await show(await cache.contextFor(hostOf("a.example")), "a.example");
    expect(Math.abs(certificate.validFromDate.getTime() - (Date.now() - HOUR_MS))).toBeLessThan(60_000);
    expect(Math.abs(certificate.validToDate.getTime() - (Date.now() + 7 * DAY_MS))).toBeLessThan(60_000);
  });

  test.each([
    { what: "is kept while it is fresh", days: 5.9, count: 1 },
    { what: "is made anew on its last day", days: 6.1, count: 2 },
    { what: "is made anew after a clock was set forward for a month", days: 30, count: 2 },
    { what: "is made anew after a clock was set back, before it would be valid", days: -0.5, count: 2 },
    { what: "is kept over a clock set back by minutes", days: -0.02, count: 1 },
  ])("one $what", async ({ days, count }) => {
    const { cache, issued } = await makeCache();
    const now = Date.now();
    await cache.contextFor(hostOf("a.example"));
    vi.useFakeTimers({ toFake: ["Date"], now: now + days * DAY_MS });
    await cache.contextFor(hostOf("a.example"));
    expect(issued).toHaveLength(count);
  });

  test("ends no later than its authority, is kept until then, and is not made after it", async () => {
    const { authority, cache, issued } = await makeCache({ days: 0.5 });
    const end = new X509Certificate(authority.certPem).validToDate.getTime();
    const certificate = await show(await cache.contextFor(hostOf("a.example")), "a.example");
    expect(certificate.validToDate.getTime()).toBe(end);
    await cache.contextFor(hostOf("a.example"));
    expect(issued).toHaveLength(1);
    vi.useFakeTimers({ toFake: ["Date"], now: end });
    await expect(cache.contextFor(hostOf("a.example"))).rejects.toThrow(ConfigError);
    await expect(cache.contextFor(hostOf("a.example"))).rejects.toThrow(/valid until .* only/);
  });
});

describe("the log of certificates", () => {
  test("names each host, but a flood becomes a count", () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_900_000_000_000 });
    const lines: DecisionEntry[] = [];
    const log = new CertificateLog({ write: (entry) => lines.push(entry) });
    for (let index = 0; index < 5000; index += 1) log.writeIssued(`h${index}.example`, Date.now());
    expect(lines).toHaveLength(100);
    expect(lines[0]).toMatchObject({ kind: "event", event: "certificate-issued", detail: "h0.example, valid until 2030-03-17T17:46:40.000Z" });
    log.writeRefused("pinned.example", "unknown ca");
    expect(lines.at(-1)).toMatchObject({ event: "certificate-refused", detail: expect.stringContaining("pinned.example (unknown ca)") });
    vi.advanceTimersByTime(2000);
    log.writeIssued("later.example", Date.now());
    expect(lines.at(-1)).toMatchObject({ detail: expect.stringMatching(/^later\.example, .*; 4900 more since/) });
  });
});
