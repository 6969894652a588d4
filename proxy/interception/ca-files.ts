import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { closeSync, constants, fchmodSync, fstatSync, fsyncSync, linkSync, lstatSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ConfigError, OutputError } from "../../policy/errors.ts";
import type { Authority } from "./authority.ts";

/** Where the stand-alone proxy keeps its authority. */
export type AuthorityPaths = { certPath: string; keyPath: string };

const TEN_YEARS = 3650;
/** Another process that makes the pair has its first file there for this long before the second. */
const PAIR_LIMIT_MS = 3000;
const LOOK_MS = 50;

/**
 * Reads the authority of the stand-alone proxy, or makes it at first use, when neither file is there; several
 * processes that start at once agree on one. `made` tells which it was. Throws ConfigError for a pair that
 * is not whole, not matching, out of date, or whose key others can read.
 */
export async function openAuthority(paths: AuthorityPaths): Promise<{ authority: Authority; made: boolean }> {
  const made = !isThere(paths.certPath) && !isThere(paths.keyPath) && (await makeFiles(paths));
  const started = Date.now();
  while (isThere(paths.keyPath) !== isThere(paths.certPath) && Math.abs(Date.now() - started) < PAIR_LIMIT_MS) await delay(LOOK_MS);
  return { authority: readFiles(paths), made };
}

/** True where this process made them; false where another one was faster. */
async function makeFiles({ certPath, keyPath }: AuthorityPaths): Promise<boolean> {
  // Loaded late: a pair that is there needs none of it.
  const { makeAuthority } = await import("./authority.ts");
  const { certPem, keyPem } = await makeAuthority(TEN_YEARS);
  for (const file of [certPath, keyPath]) makeDirectory(path.dirname(file));
  if (!placeFile(keyPath, { content: keyPem, mode: 0o600 })) return false;
  if (placeFile(certPath, { content: certPem, mode: 0o644 })) return true;
  // A certificate of somebody else's came between: this key is nobody's, and was made just now.
  unlinkSync(keyPath);
  throw new ConfigError({ what: `${certPath} appeared while the authority was being made`, fix: "start the proxy again", place: { file: certPath } });
}

/** A directory of our own making is for keys, and stays out of repositories. */
function makeDirectory(directory: string): void {
  try {
    if (mkdirSync(directory, { recursive: true, mode: 0o755 }) === undefined) return;
  } catch (error) {
    throw fail(directory, error);
  }
  placeFile(path.join(directory, ".gitignore"), { content: "*\n", mode: 0o644 });
}

/** Puts a file in place whole, with exactly these rights, unless there is anything under that name. */
function placeFile(file: string, { content, mode }: { content: string; mode: number }): boolean {
  const draft = `${file}.${randomBytes(12).toString("hex")}.new`;
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  let handle: number | undefined;
  try {
    handle = openSync(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    // The umask took something of the mode away.
    fchmodSync(handle, mode);
    writeFileSync(handle, content);
    fsyncSync(handle);
    // Unlike a rename, a link replaces nothing.
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw fail(file, error);
  } finally {
    if (handle !== undefined) {
      closeSync(handle);
      unlinkSync(draft);
    }
  }
}

function readFiles({ certPath, keyPath }: AuthorityPaths): Authority {
  for (const [there, missing] of [[certPath, keyPath], [keyPath, certPath]] as const) {
    if (isThere(there) && !isThere(missing)) throw refuse(there, `is there, but ${missing} is not`, "both files of the authority, or neither", "put the other one back, or remove this one so that a new pair is made");
  }
  const authority = { certPem: readPlain(certPath).content, keyPem: readKey(keyPath) };
  checkPair(authority, { certPath, keyPath });
  return authority;
}

function readKey(keyPath: string): string {
  const { content, uid, mode } = readPlain(keyPath);
  if (uid !== process.getuid?.()) throw refuse(keyPath, `belongs to the user ${uid}`, "a key of your own", "make it yours, or name another file as ca_key_path");
  if ((mode & 0o077) !== 0) throw refuse(keyPath, `can be read by others (mode ${(mode & 0o777).toString(8)})`, "mode 600", `chmod 600 ${keyPath}; if others may have read it, remove both files and trust the new authority instead`);
  return content;
}

function readPlain(file: string): { content: string; uid: number; mode: number } {
  if (lstatSync(file).isSymbolicLink()) throw refuse(file, "is a symbolic link", "a regular file", "name the file itself");
  let handle: number | undefined;
  try {
    // A pipe would make the reader wait for ever; what takes the file's place after the look is judged below.
    handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(handle);
    if (!stat.isFile()) throw refuse(file, "is no regular file", "a regular file", "name another file");
    return { content: readFileSync(handle, "utf8"), uid: stat.uid, mode: stat.mode };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw refuse(file, `cannot be read (${codeOf(error)})`, "a file of your own", "see to its rights");
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** An authority that cannot do its work would fail at the first connection, far from the cause. */
function checkPair({ certPem, keyPem }: Authority, { certPath, keyPath }: AuthorityPaths): void {
  const certificate = parseOr(() => new X509Certificate(certPem), certPath, "holds no certificate");
  const key = parseOr(() => createPrivateKey(keyPem), keyPath, "holds no private key without a passphrase");
  const anew = "remove both files, so that a new pair is made";
  if (!certificate.publicKey.equals(createPublicKey(key))) throw refuse(keyPath, `is not the key of ${certPath}`, "the key that the certificate was made with", anew);
  if (!certificate.ca) throw refuse(certPath, "is not the certificate of an authority", "CA:TRUE among its basic constraints", anew);
  if (!signsWith(key)) throw refuse(keyPath, "is of a kind that is not supported", "an ECDSA key on the curve P-256, or an RSA key", anew);
  if (certificate.validToDate.getTime() <= Date.now()) throw refuse(certPath, `ran out on ${certificate.validTo}`, "a valid authority", `${anew}, and trust it where the old one was trusted`);
}

function signsWith({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  return asymmetricKeyType === "rsa" || (asymmetricKeyType === "ec" && asymmetricKeyDetails?.namedCurve === "prime256v1");
}

function parseOr<T>(parse: () => T, file: string, what: string): T {
  try {
    return parse();
  } catch {
    throw refuse(file, what, "PEM", "export it again, or remove both files so that a new pair is made");
  }
}

/** Any name in the directory counts, a dangling link too. */
function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // Making it will tell more.
    if (codeOf(error) === "ENOTDIR") return false;
    throw refuse(file, `cannot be looked for (${codeOf(error)})`, "a path that you may enter", "see to the rights of its directories");
  }
}

function refuse(file: string, what: string, expected: string, fix: string): ConfigError {
  return new ConfigError({ what: `${file} ${what}`, expected, fix, place: { file } });
}

function fail(file: string, error: unknown): OutputError {
  return new OutputError({ what: `${file} cannot be made (${codeOf(error)})`, expected: "a place for the authority's files", fix: "make room or see to the rights, or name other files as ca_cert_path and ca_key_path", place: { file } }, { cause: error });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
