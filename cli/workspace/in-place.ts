import { closeSync, constants, lstatSync, openSync, type BigIntStats } from "node:fs";
import { basename, dirname } from "node:path";
import { resolvePath } from "./path-fact.ts";

/** Linux's O_PATH, which Node does not name: a handle that says which file it is and opens nothing. */
const O_PATH = 0x20_0000;

/**
 * Looks at what stands at a canonical path, and is sure that no link was on the way: an agent in another
 * box of the project may exchange directories for links at any moment, also between two looks.
 * Throws the system's error; ENOTDIR says that a directory of the path is none (any more).
 */
export function lstatInPlace(path: string): BigIntStats {
  if (path === "/") return lstatSync("/", { bigint: true });
  return withDirectory(dirname(path), (directory) => lstatSync(`${directory}/${basename(path)}`, { bigint: true }));
}

/** Calls `make` with a name for `path` that leads into the directory as it is now, whatever becomes of its own path. */
export function makeInPlace(path: string, make: (path: string) => void): void {
  withDirectory(dirname(path), (directory) => make(`${directory}/${basename(path)}`));
}

/** Opens one directory after the other from the root on, following none that is a link. */
function withDirectory<Value>(path: string, use: (directory: string) => Value): Value {
  if (process.platform !== "linux") return useResolved(path, use);
  const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  let handle = openSync("/", flags);
  try {
    for (const name of path.split("/").filter((part) => part !== "")) {
      const next = openSync(`/proc/self/fd/${handle}/${name}`, flags);
      closeSync(handle);
      handle = next;
    }
    return use(`/proc/self/fd/${handle}`);
  } finally {
    closeSync(handle);
  }
}

/** Other systems have no names for open directories; their boxes run in a machine of their own anyway. */
function useResolved<Value>(path: string, use: (directory: string) => Value): Value {
  if (resolvePath(path) !== path) throw Object.assign(new Error("a link is on the way"), { code: "ENOTDIR" });
  return use(path);
}
