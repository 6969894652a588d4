import { createHash, randomBytes } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ProxySettings } from "../../policy/proxy-config.ts";
import { writeOwnFile } from "./own-file.ts";

/** Makes a token that nobody can guess. */
export function makeToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Where the token of the admin API that listens there lies. */
export function findTokenFile(directory: string, admin: ProxySettings["admin"]): string {
  const name = "path" in admin ? `unix-${createHash("sha256").update(admin.path).digest("hex").slice(0, 16)}` : `${admin.address.replaceAll(":", "_")}-${admin.port}`;
  return join(directory, `admin-${name}.token`);
}

/** Writes a token so that only its owner reads it. Throws OutputError. */
export function writeTokenFile(file: string, token: string): void {
  writeOwnFile(file, `${token}\n`);
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
