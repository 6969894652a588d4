import type { Stats } from "node:fs";
import { quotePath } from "../policy/parsed.ts";
import { FileError, GuardError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import type { Found } from "./path-walk.ts";
import type { Intent } from "./request.ts";

/** What a path is looked up for. */
export type Purpose = Intent | "destination";

/** Refuses what the grant does not give. `exists` is undefined before anything was looked up. Throws GuardError `not-granted`. */
export function judgeAccess({ root, access }: Grant, purpose: Purpose, exists: boolean | undefined): void {
  const needed = findNeeded(purpose, exists);
  if (needed.some((right) => access[right])) return;
  throw new GuardError("not-granted", `grant:${root}`, {
    what: `the grant of ${quotePath(root)} does not give ${needed.join(" or ")}`,
    fix: `grant ${quotePath(root)} with ${needed.join(" or ")}`,
  });
}

function findNeeded(purpose: Purpose, exists: boolean | undefined): readonly (keyof Grant["access"])[] {
  switch (purpose) {
    case "read":
    case "list":
      return ["read"];
    case "create":
      return ["create"];
    case "delete":
    case "rename":
    case "move":
      return ["delete"];
    case "write":
    case "destination":
      if (exists === undefined) return ["write", "create"];
      return exists ? ["write"] : ["create"];
  }
}

/** Refuses what stands there and does not suit the purpose. Throws GuardError `special-file` or `hard-link`, FileError. */
export function judgeObject(grant: Grant, { path, object, parent }: Found, purpose: Purpose): void {
  const stat = object?.stat;
  const isTaken = purpose === "delete" || purpose === "rename" || purpose === "move";
  if (parent === undefined && path === grant.root && purpose !== "list" && purpose !== "read") {
    throw new GuardError("not-granted", `grant:${grant.root}`, { what: `${quotePath(path)} is a granted root, which no session changes` });
  }
  if (stat === undefined) {
    if (isTaken || purpose === "read" || purpose === "list") throw new FileError("ENOENT", { what: `${quotePath(path)} does not exist` });
    return;
  }
  if (!stat.isFile() && !stat.isDirectory() && !stat.isSymbolicLink()) throw special(path, `a ${nameKind(stat)}`);
  if (purpose === "list" && !stat.isDirectory()) throw new FileError("ENOTDIR", { what: `${quotePath(path)} is no directory` });
  if (purpose === "create" || (purpose === "destination" && stat.isDirectory())) throw new FileError("EEXIST", { what: `${quotePath(path)} exists already` });
  if ((purpose === "read" || purpose === "write") && !stat.isFile()) throw special(path, "a directory");
  // Only contents are shared between the names of a file: deleting or renaming one of them touches no other.
  if ((purpose === "read" || purpose === "write") && stat.nlink > 1 && !grant.hardLinks) throw hardLinked(path, stat.nlink);
}

/** No lookup can tell where the other names are: `ln ~/.ssh/id_ed25519 project/notes` is as good as a link out of the root. */
function hardLinked(path: string, names: number): GuardError {
  return new GuardError("hard-link", "hard-links", {
    what: `${quotePath(path)} is one of ${names} names of the same file, and the others may lie outside the root`,
    expected: "a file with one name",
    fix: "grant the folder with hard links (package stores need it), or replace the file by a copy",
  });
}

function special(path: string, kind: string): GuardError {
  return new GuardError("special-file", "kinds", { what: `${quotePath(path)} is ${kind}`, expected: "a regular file" });
}

function nameKind(stat: Stats): string {
  if (stat.isFIFO()) return "FIFO";
  if (stat.isSocket()) return "socket";
  return stat.isBlockDevice() || stat.isCharacterDevice() ? "device" : "special file";
}
