import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, constants, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { OutputError } from "../../policy/errors.ts";

/** Writes a file whole, so that only its owner reads it, over one that a killed proxy left. Throws OutputError. */
export function writeOwnFile(file: string, content: string): void {
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const handle = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      writeSync(handle, content);
    } finally {
      closeSync(handle);
    }
    // The umask may have taken the owner's own rights away.
    chmodSync(draft, 0o600);
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new OutputError({ what: `the file cannot be written (${error instanceof Error && "code" in error ? String(error.code) : String(error)})`, expected: "a directory that you may write", fix: "make room, or correct its permissions", place: { file } }, { cause: error });
  }
}
