import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { HostRunner } from "../environment/host-command.ts";
import { readPathFact, resolvePath, type PathFact } from "./path-fact.ts";

/** One variable of a git configuration file; the name in lower case, as git prints it. */
type ConfigEntry = { name: string; value: string };

const MAX_INCLUDES = 100;
const FOLLOWED = String.raw`^(include\.path|includeif\..*\.path|core\.hookspath)$`;

/**
 * Reads the variables of one configuration file whose names match. git itself parses it, includes not
 * followed; nothing of the repository runs by that. A host without git has no answer and no need for one.
 */
export async function readGitConfig(run: HostRunner, file: string, pattern: string): Promise<ConfigEntry[]> {
  const { exitCode, stdout } = await run(["git", "config", "--file", file, "-z", "--get-regexp", pattern], { cwd: "/" });
  return exitCode === 0 ? parseGitConfigList(stdout) : [];
}

/** Parses the answer of `git config -z`: name, newline, value, NUL; a variable without "=" has no newline. */
export function parseGitConfigList(text: string): ConfigEntry[] {
  return text
    .split("\0")
    .filter((record) => record !== "")
    .map((record) => {
      const cut = record.indexOf("\n");
      return cut === -1 ? { name: record, value: "" } : { name: record.slice(0, cut), value: record.slice(cut + 1) };
    });
}

type FollowQuery = { run: HostRunner; file: string; workTree: string | null; home: string };
/** A path that git on the host follows, and what it takes it for. */
export type Followed = { fact: PathFact; as: "file" | "directory" };

/**
 * Finds what a configuration file makes git follow: the files it includes (any may set a command that
 * git runs) and its hooks directory. Conditions of includes are not judged: each target counts.
 */
export async function readFollowedPaths({ run, file, workTree, home }: FollowQuery): Promise<Followed[]> {
  const found: Followed[] = [];
  const queue = [file];
  const seen = new Set<string>();
  for (let current = queue.shift(); current !== undefined && seen.size < MAX_INCLUDES; current = queue.shift()) {
    const real = resolvePath(current);
    if (real === null || seen.has(real)) continue;
    seen.add(real);
    if (!mayFollow(real)) continue;
    for (const { name, value } of await readGitConfig(run, real, FOLLOWED)) {
      const isHooks = name === "core.hookspath";
      const base = isHooks ? (workTree ?? dirname(real)) : dirname(real);
      const path = resolve(base, expandTilde(value, home));
      found.push(isHooks ? readHooksDirectory(path) : { fact: readInPlace(path), as: "file" });
      if (!isHooks) queue.push(path);
    }
  }
  return found;
}

/** Looks at a hooks directory; for husky, which names `.husky/_` and runs what lies beside it, at the one above. */
export function readHooksDirectory(path: string): Followed {
  return { fact: readInPlace(basename(path) === "_" ? dirname(path) : path), as: "directory" };
}

/** Looks at a path after the links on the way to it are resolved; whether it is a link itself is left to see. */
function readInPlace(path: string): PathFact {
  return readPathFact(join(resolvePath(dirname(path)) ?? dirname(path), basename(path)));
}

/** Spares a process for the many files that follow nothing. */
function mayFollow(file: string): boolean {
  return existsSync(file) && /include|hookspath/i.test(readFileSync(file, "utf8"));
}

export function expandTilde(path: string, home: string): string {
  return path === "~" || path.startsWith("~/") ? `${home}${path.slice(1)}` : path;
}
