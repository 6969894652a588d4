import { lstatSync, realpathSync } from "node:fs";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";

/** What stands at a path of the host, links not followed. `size` is that of a file, else 0. */
export type PathFact = { path: string; kind: PathKind; size: number };
export type PathKind = "missing" | "file" | "directory" | "link" | "other";

/** Looks at one path; one that cannot be looked at is a `ConfigError`, since it cannot be protected either. */
export function readPathFact(path: string): PathFact {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return { path, kind: "missing", size: 0 };
    if (stat.isFile()) return { path, kind: "file", size: stat.size };
    if (stat.isDirectory()) return { path, kind: "directory", size: 0 };
    return { path, kind: stat.isSymbolicLink() ? "link" : "other", size: 0 };
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOTDIR" || code === "ELOOP") return { path, kind: "missing", size: 0 };
    throw new ConfigError(
      { what: `cannot look at ${quotePath(path)} (${code})`, expected: "a path that you may read", fix: "correct its permissions" },
      { cause: error },
    );
  }
}

/** Resolves every link of a path; null where it does not lead anywhere. */
export function resolvePath(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

/** Whether `path` is `directory` or lies below it; both canonical. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

/** The code of a system error (ENOENT), or its text where it has none. */
export function errorCode(error: unknown): string {
  if (error instanceof Error) return "code" in error && typeof error.code === "string" ? error.code : error.message;
  return String(error);
}
