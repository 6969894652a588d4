import { createPrivateKey, X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { makeAuthority } from "../../../../proxy/interception/authority.ts";
import { makeSerial } from "../../../../proxy/interception/serial.ts";
import { x509 } from "../../../../proxy/interception/x509.ts";

const DAY_MS = 86_400_000;

describe("an authority", () => {
  test("is an ECDSA P-256 authority that signs leaves of TLS servers only", async () => {
    const { certPem, keyPem } = await makeAuthority();
    const certificate = new X509Certificate(certPem);
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(keyPem))).toBe(true);
    expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    const parsed = new x509.X509Certificate(certPem);
    expect(parsed.getExtension(x509.BasicConstraintsExtension)).toMatchObject({ ca: true, pathLength: 0, critical: true });
    expect(parsed.getExtension(x509.KeyUsagesExtension)).toMatchObject({ usages: x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, critical: true });
  });

  test("is valid from before now for as long as was asked", async () => {
    const certificate = new X509Certificate((await makeAuthority(30)).certPem);
    expect(certificate.validFromDate.getTime()).toBeLessThan(Date.now() - DAY_MS / 2);
    expect(certificate.validToDate.getTime()).toBeGreaterThan(Date.now() + 29 * DAY_MS);
    expect(certificate.validToDate.getTime()).toBeLessThan(Date.now() + 31 * DAY_MS);
  });

  test("shares neither name, serial number nor key with another", async () => {
    const [one, other] = (await Promise.all([makeAuthority(), makeAuthority()])).map(({ certPem }) => new X509Certificate(certPem));
    expect(one?.subject).not.toBe(other?.subject);
    expect(one?.serialNumber).not.toBe(other?.serialNumber);
    expect(one?.publicKey.export({ type: "spki", format: "pem" })).not.toBe(other?.publicKey.export({ type: "spki", format: "pem" }));
  });

  test("has serial numbers that are positive and of full length", () => {
    for (let round = 0; round < 200; round += 1) expect(makeSerial()).toMatch(/^[4-7][0-9a-f]{31}$/);
  });
});
