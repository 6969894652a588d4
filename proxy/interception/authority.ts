import { KeyObject, randomBytes, webcrypto } from "node:crypto";
import { makeSerial } from "./serial.ts";
import { x509 } from "./x509.ts";

// Loaded together, and late: the library takes longer to load than the rest of the proxy.
export { openIssuer } from "./issuer.ts";

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
