// tsyringe, inside @peculiar/x509, wants this polyfill loaded ahead of it.
// oxlint-disable-next-line import/no-unassigned-import
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;
const VALIDITY_DAYS = 3650;
// Enough alternative names that the handshake spans many packets, for links with a small MTU.
const PADDING_NAMES = 400;

/** A certificate authority as PEM texts. */
export type AuthorityPem = { certificate: string; key: string };

/** Makes the lab's own certificate authority. */
export async function createAuthority(): Promise<AuthorityPem> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=AgentBox lab CA,O=AgentBox lab",
    ...validity(),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: await exportKey(keys.privateKey) };
}

/** Hands out TLS contexts with a certificate for one host name or address, made once and kept. */
export type Issuer = { contextFor: (host: string) => Promise<SecureContext> };

/** Opens the authority for issuing; all leaves share one key, which saves its making on each new name. */
export async function createIssuer(authority: AuthorityPem): Promise<Issuer> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await importKey(authority.key);
  const leafKeys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const leafKey = await exportKey(leafKeys.privateKey);
  const contexts = new Map<string, Promise<SecureContext>>();

  async function issue(host: string): Promise<SecureContext> {
    const certificate = await x509.X509CertificateGenerator.create({
      subject: "O=AgentBox lab",
      issuer: issuer.subject,
      ...validity(),
      signingAlgorithm: ALGORITHM,
      publicKey: leafKeys.publicKey,
      signingKey,
      extensions: [
        new x509.SubjectAlternativeNameExtension(alternativeNames(host), true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ],
    });
    return createSecureContext({ key: leafKey, cert: certificate.toString("pem"), minVersion: "TLSv1.2" });
  }

  return {
    contextFor: (host) => {
      const kept = contexts.get(host) ?? issue(host);
      contexts.set(host, kept);
      return kept;
    },
  };
}

function alternativeNames(host: string): x509.JsonGeneralName[] {
  if (isIP(host) !== 0) return [{ type: "ip", value: host }];
  const padding = host.startsWith("large-cert.") ? PADDING_NAMES : 0;
  return [host, ...Array.from({ length: padding }, (_, index) => `padding-${index}.${host}`)].map((value) => ({ type: "dns", value }));
}

// Clocks of boxes and host may differ a little, hence the day before.
function validity(): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + VALIDITY_DAYS * DAY_MS) };
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return `-----BEGIN PRIVATE KEY-----\n${(der.toString("base64").match(/.{1,64}/g) ?? []).join("\n")}\n-----END PRIVATE KEY-----\n`;
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
  return await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
}
