import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { ConfigError, type Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { expandTilde } from "../workspace/git-config.ts";
import { errorCode, isWithin, resolvePath } from "../workspace/path-fact.ts";
import { dropPublic, findCertificateBlocks, SHIPPED_STORES } from "./public-certificates.ts";

/** Certificates of the site's own authorities, as PEM, without those that every program knows. */
export type SiteCa = { file: string; source: string; certificates: string[] };

type Candidate = { path: string; source: string; asked: boolean };
type SiteCaQuery = {
  /** Value of `--ca-file`. */
  caFile: string | null;
  hostEnv: NodeJS.ProcessEnv;
  cwd: string;
  /** Directories that a box may write: an authority from there would be the agent's choice. */
  writableRoots: readonly string[];
  /** Directories of public authorities, for tests. */
  stores?: readonly string[];
};

const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Finds the site's authority: `--ca-file`, AGENTBOX_CA_FILE, else the bundle that NODE_EXTRA_CA_CERTS or
 * SSL_CERT_FILE names on the host. One that was asked for has to be right (`ConfigError`); one that is
 * only found is left out with a notice when it is not.
 */
export function readSiteCa(query: SiteCaQuery): { ca: SiteCa | null; notices: string[] } {
  const notices: string[] = [];
  for (const candidate of listCandidates(query)) {
    const { ca, complaints } = readBundle(candidate, query);
    if (complaints.length > 0 && candidate.asked) throw new ConfigError(complaints);
    if (complaints.length > 0) notices.push(...complaints.map(({ what }) => `left out: ${what}`));
    if (ca === null || ca.certificates.length === 0) continue;
    const count = ca.certificates.length === 1 ? "one certificate" : `${ca.certificates.length} certificates`;
    return { ca, notices: [...notices, `the site's authority is ${quotePath(ca.file)}, named by ${ca.source} (${count}); it serves build and box`] };
  }
  return { ca: null, notices };
}

function listCandidates({ caFile, hostEnv }: SiteCaQuery): Candidate[] {
  const wanted = [
    { path: caFile, source: "--ca-file", asked: true },
    { path: hostEnv["AGENTBOX_CA_FILE"], source: "AGENTBOX_CA_FILE", asked: true },
    { path: hostEnv["NODE_EXTRA_CA_CERTS"], source: "NODE_EXTRA_CA_CERTS", asked: false },
    { path: hostEnv["SSL_CERT_FILE"], source: "SSL_CERT_FILE", asked: false },
  ];
  // An empty variable is as good as none; an empty option is a mistake.
  const found = wanted.flatMap(({ path, ...rest }) => (path === undefined || path === null || (path === "" && rest.source !== "--ca-file") ? [] : [{ path, ...rest }]));
  const asked = found.find((candidate) => candidate.asked);
  return asked === undefined ? found : [asked];
}

function readBundle({ path, source, asked }: Candidate, { cwd, writableRoots, stores = SHIPPED_STORES }: SiteCaQuery): { ca: SiteCa | null; complaints: Complaint[] } {
  const named = resolve(cwd, expandTilde(path, homedir()));
  const file = resolvePath(named);
  const refuse = (what: string, fix: string) => ({ ca: null, complaints: [{ what: `${source} ${quotePath(path)} ${what}`, expected: "a PEM file of certificates", fix }] });
  if (path === "" || file === null) return refuse("does not exist", "correct the path");
  if (writableRoots.some((root) => isWithin(file, root) || isWithin(named, root))) {
    return refuse("lies where the agent may write, which could make itself an authority", "keep it outside the project and of added directories");
  }
  const text = readText(file);
  if ("flaw" in text) return refuse(text.flaw, "name a PEM file that you can read");
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text.content)) return refuse("holds a private key", "name a file with nothing but certificates");
  const blocks = findCertificateBlocks(text.content);
  if (blocks.length === 0) return refuse("holds no certificate", "name a PEM file; convert DER with openssl x509 -inform der -in FILE");
  return parseBlocks(blocks, { file, source, asked, stores });
}

type BundleSource = { file: string; source: string; asked: boolean; stores: readonly string[] };

function parseBlocks(blocks: readonly string[], { file, source, asked, stores }: BundleSource): { ca: SiteCa; complaints: Complaint[] } {
  const parsed = blocks.map((pem, at) => parseCertificate(pem, at + 1, file));
  const complaints = parsed.flatMap((one) => ("what" in one ? [one] : []));
  const certificates = parsed.filter((one) => one instanceof X509Certificate);
  const own = new Map(dropPublic(certificates, stores).map((one) => [one.fingerprint256, one]));
  const expired = asked ? [...own.values()].flatMap((one) => describeExpired(one, file)) : [];
  return { ca: { file, source, certificates: [...own.values()].map(String) }, complaints: [...complaints, ...expired] };
}

function parseCertificate(pem: string, position: number, file: string): X509Certificate | Complaint {
  try {
    return new X509Certificate(pem);
  } catch {
    return { what: `certificate ${position} cannot be read`, expected: "X.509 in PEM", fix: "export it again", place: { file } };
  }
}

/** An authority that has run out makes every connection fail later, far from the cause. */
function describeExpired(certificate: X509Certificate, file: string): Complaint[] {
  if (certificate.validToDate.getTime() > Date.now()) return [];
  const subject = certificate.subject.replaceAll("\n", ", ");
  return [{ what: `the certificate of ${subject} ran out on ${certificate.validTo}`, expected: "a valid authority", fix: "get the current one", place: { file } }];
}

function readText(file: string): { content: string } | { flaw: string } {
  try {
    const stat = statSync(file);
    if (!stat.isFile()) return { flaw: "is not a plain file" };
    return stat.size > MAX_BYTES ? { flaw: `has ${stat.size} bytes` } : { content: readFileSync(file, "utf8") };
  } catch (error) {
    return { flaw: `cannot be read (${errorCode(error)})` };
  }
}
