import { X509Certificate } from "node:crypto";

const BLOCK = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----\s[A-Za-z0-9+/=\s]+-----END \1-----/g;

export type TrustParts = {
  /** The authority of the proxy. */
  own: string;
  /** Bundles that the user set; whatever they hold beside certificates stays out. */
  user: readonly string[];
  /** The roots of the system. */
  system: string;
};

/**
 * Merges PEM bundles into one that a program can use in place of the system's: most take one file only, and with
 * the authority alone they would refuse what is not intercepted. Each certificate appears once; what no
 * program could read is left out, since one bad block makes OpenSSL drop the whole file.
 */
export function mergeTrust({ own, user, system }: TrustParts): string {
  const merged = new Map<string, string>();
  // Ours first: some tools read only one certificate of a file.
  for (const text of [own, ...user, system]) {
    for (const certificate of readCertificates(text)) merged.set(certificate.fingerprint256, merged.get(certificate.fingerprint256) ?? certificate.toString());
  }
  return [...merged.values()].join("");
}

function readCertificates(text: string): X509Certificate[] {
  return (text.match(BLOCK) ?? []).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}
