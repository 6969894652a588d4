// tsyringe, inside @peculiar/x509, wants this polyfill loaded ahead of it.
// oxlint-disable-next-line import/no-unassigned-import
import "reflect-metadata";
import { KeyObject, randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

/** A certificate authority as PEM texts. Who holds the key can pretend to be any host before those that trust it. */
export type Authority = { certPem: string; keyPem: string };

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;
/** Longer than a box lives. */
const SESSION_DAYS = 90;
/** Clocks of a host and its virtual machines differ. */
const BACKDATED_DAYS = 1;

/** Makes an authority of its own name and key, valid for so many days from now. */
export async function makeAuthority(days: number = SESSION_DAYS): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // Trust stores find an authority by its name: two of one name would hide each other.
    name: `CN=AgentBox interception authority ${randomBytes(4).toString("hex")},O=AgentBox`,
    serialNumber: makeSerial(),
    notBefore: new Date(now - BACKDATED_DAYS * DAY_MS),
    notAfter: new Date(now + days * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      // It signs leaves only, and only those of TLS servers: nobody makes further authorities or signs programs with it.
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: `${certificate.toString("pem")}\n`, keyPem: KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString() };
}

/** A random serial number of 16 bytes, in hexadecimal, that reads as positive (RFC 5280, 4.1.2.2). */
export function makeSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
