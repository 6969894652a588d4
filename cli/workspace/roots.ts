import { statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { errorCode, resolvePath } from "./path-fact.ts";

/** A directory of the host that the box may write, mounted at its own path. `git` is a repository outside the other two. */
export type Root = { path: string; typed: string; role: "project" | "added" | "git"; owner: number };

/** How messages call a root. */
export function describeRoot({ role, typed }: Pick<Root, "role" | "typed">): string {
  const path = quotePath(typed);
  if (role === "project") return `the project directory ${path}`;
  return role === "added" ? `--add-dir ${path}` : `the repository directory ${path}`;
}

type RootsQuery = { cwd: string; addDirs: readonly string[]; home: string };

/** Resolves the project and the added directories to real paths, and tells what is wrong with each. */
export function readRoots({ cwd, addDirs, home }: RootsQuery): { roots: Root[]; complaints: Complaint[] } {
  const wanted = [
    { typed: cwd, role: "project" } as const,
    ...addDirs.map((typed) => ({ typed, role: "added" }) as const),
  ];
  const found = wanted.map(({ typed, role }) => readRoot(typed, role, { cwd, home }));
  return { roots: found.filter((one) => "path" in one), complaints: found.filter((one) => "what" in one) };
}

function readRoot(typed: string, role: "project" | "added", { cwd, home }: { cwd: string; home: string }): Root | Complaint {
  const place = { role, typed };
  if (typed === "") return { what: `${describeRoot(place)} is empty`, expected: "a directory", fix: "name one" };
  const flaw = findPathFlaw(typed);
  if (flaw !== null) {
    return { what: `${describeRoot(place)} ${flaw}`, expected: "a path of printable characters", fix: "rename the directory" };
  }
  // A shell does not expand the tilde of --add-dir=~/x.
  const path = typed === "~" || typed.startsWith("~/") ? join(home, typed.slice(1)) : resolve(isAbsolute(cwd) ? cwd : "/", typed);
  const real = resolvePath(path);
  if (real === null) return { what: `${describeRoot(place)} does not exist`, expected: "a directory", fix: "create it or correct the path" };
  const realFlaw = findPathFlaw(real);
  if (realFlaw !== null) {
    return { what: `${describeRoot(place)} leads to ${quotePath(real)}, which ${realFlaw}`, fix: "rename the directory" };
  }
  try {
    const stat = statSync(real);
    if (stat.isDirectory()) return { path: real, typed, role, owner: stat.uid };
    return { what: `${describeRoot(place)} is not a directory`, expected: "a directory", fix: "name the directory that holds it" };
  } catch (error) {
    return { what: `${describeRoot(place)} cannot be read (${errorCode(error)})`, fix: "correct its permissions" };
  }
}

/**
 * Finds what would change on its way through the engine's option syntax, or forge a line of a log:
 * control characters, and U+FFFD, which Node puts where the bytes of a name are not UTF-8.
 */
function findPathFlaw(path: string): string | null {
  if (path.includes("\u{fffd}")) return "has a name that is not valid UTF-8";
  return /[\p{Cc}\u{2028}\u{2029}]/u.test(path) ? "has a control character in its name" : null;
}
