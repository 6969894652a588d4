import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";

/** Where distributions keep the public authorities as shipped (Debian, Alpine, SUSE; Fedora); what a site adds lies elsewhere. */
export const SHIPPED_STORES: readonly string[] = ["/usr/share/ca-certificates", "/usr/share/pki/ca-trust-source"];

const BLOCK = /-----BEGIN ((?:X509 )?CERTIFICATE)-----[A-Za-z0-9+/=\s]+-----END \1-----/g;

/** Finds the PEM blocks of certificates in a text. */
export function findCertificateBlocks(text: string): string[] {
  return (text.match(BLOCK) ?? []).map((block) => block.replaceAll("X509 CERTIFICATE", "CERTIFICATE"));
}

/**
 * Leaves out the authorities that are everybody's: those that Node brings, and those of the host's own
 * distribution. The latter hold retired ones that the box's image has dropped, and would come back.
 */
export function dropPublic(certificates: readonly X509Certificate[], stores: readonly string[]): X509Certificate[] {
  const unknown = without(certificates, rootCertificates);
  return unknown.length === 0 ? [] : without(unknown, stores.flatMap(readStore));
}

function without(certificates: readonly X509Certificate[], known: readonly string[]): X509Certificate[] {
  const fingerprints = new Set(known.flatMap(readFingerprint));
  return certificates.filter(({ fingerprint256 }) => !fingerprints.has(fingerprint256));
}

function readStore(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .flatMap((entry) => findCertificateBlocks(readFileSync(join(entry.parentPath, entry.name), "utf8")));
  } catch {
    // No such store on this host: nothing is known by it.
    return [];
  }
}

function readFingerprint(pem: string): string[] {
  try {
    return [new X509Certificate(pem).fingerprint256];
  } catch {
    return [];
  }
}
