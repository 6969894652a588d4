import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { type Host, renderHost } from "../../policy/host-name.ts";
import type { Authority } from "./authority.ts";
import { makeSerial } from "./serial.ts";
import { x509 } from "./x509.ts";

/** From when until when a certificate is valid, in Unix ms. */
export type Validity = { from: number; until: number };

/** Makes what a TLS server shows for one host. */
export type Issuer = { issue: (host: Host, validity: Validity) => Promise<SecureContext> };

/**
 * Opens an authority for issuing. All leaves share one key, which never leaves the process: making one is
 * dearer than signing, and whoever could read it could read them all.
 */
export async function openIssuer({ certPem, keyPem }: Authority): Promise<Issuer> {
  const authority = new x509.X509Certificate(certPem);
  const algorithm = signingAlgorithm(createPrivateKey(keyPem));
  const signingKey = createPrivateKey(keyPem).toCryptoKey(algorithm, false, ["sign"]);
  const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" });
  const publicKey = new x509.PublicKey(leaf.publicKey.export({ type: "spki", format: "der" }));
  const extensions = [
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
  ];

  return {
    issue: async (host, { from, until }) => {
      const certificate = await x509.X509CertificateGenerator.create({
        subject: "O=AgentBox",
        issuer: authority.subjectName,
        serialNumber: makeSerial(),
        notBefore: new Date(from),
        notAfter: new Date(until),
        signingAlgorithm: algorithm,
        publicKey,
        signingKey,
        // No common name: it holds 64 bytes at most, and clients look at the alternative name only (RFC 9525, 2).
        extensions: [new x509.SubjectAlternativeNameExtension([{ type: host.kind === "name" ? "dns" : "ip", value: renderHost(host) }]), ...extensions],
      });
      // Without `ca` Node would load all public roots, which a server that asks for no certificate has no use for.
      return createSecureContext({ key, cert: `${certificate.toString("pem")}\n${certPem}`, ca: certPem, minVersion: "TLSv1.2" });
    },
  };
}

function signingAlgorithm(key: KeyObject): { name: string; hash: string; namedCurve?: string } {
  return key.asymmetricKeyType === "rsa" ? { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } : { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
}
