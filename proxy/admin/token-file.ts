import { createHash, randomBytes } from "node:crypto";
import { chmodSync, closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { OutputError } from "../../policy/errors.ts";
import type { ProxySettings } from "../../policy/proxy-config.ts";

/** Makes a token that nobody can guess. */
export function makeToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Where the token of the admin API that listens there lies. */
export function findTokenFile(directory: string, admin: ProxySettings["admin"]): string {
  const name = "path" in admin ? `unix-${createHash("sha256").update(admin.path).digest("hex").slice(0, 16)}` : `${admin.address.replaceAll(":", "_")}-${admin.port}`;
  return join(directory, `admin-${name}.token`);
}

/** Writes a token so that only its owner reads it, over one that a killed proxy left. Throws OutputError. */
export function writeTokenFile(file: string, token: string): void {
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const handle = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      writeSync(handle, `${token}\n`);
    } finally {
      closeSync(handle);
    }
    // The umask may have taken the owner's own rights away.
    chmodSync(draft, 0o600);
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new OutputError({ what: `the token of the admin API cannot be written (${error instanceof Error && "code" in error ? String(error.code) : String(error)})`, expected: "a directory that you may write", fix: "make room, or correct its permissions", place: { file } }, { cause: error });
  }
}

/** Removes a token file, unless a later start wrote its own. */
export function removeTokenFile(file: string, token: string): void {
  if (readTokenFile(file) === token) rmSync(file, { force: true });
}

/** Reads a token; undefined where there is none. */
export function readTokenFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    // Not there, or none of ours: either way there is nothing to show.
    return undefined;
  }
}
