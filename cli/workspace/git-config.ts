import { basename, dirname, join, resolve } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { HostRunner } from "../environment/host-command.ts";
import { readPathFact, resolvePath, type PathFact } from "./path-fact.ts";
import { readPlainFile } from "./plain-file.ts";

/** One variable of a git configuration file; the name in lower case, as git prints it. */
type ConfigEntry = { name: string; value: string };

const MAX_BYTES = 2 * 1024 * 1024;
const MAX_INCLUDES = 100;
const FOLLOWED = String.raw`^(include\.path|includeif\..*\.path|core\.hookspath)$`;

/**
 * Reads the variables of one configuration file whose names match `pattern`. git itself parses the text,
 * includes not followed; nothing of the repository runs by that. A host without git has no answer and no
 * need for one. `hint` spares a process for the many files that do not hold it.
 *
 * A file that is too large to judge is a `ConfigError`; what is no plain file says nothing, since git
 * fails or waits there too.
 */
export async function readGitConfig({ run, file, hint, pattern }: ConfigQuery): Promise<ConfigEntry[]> {
  const found = readPlainFile(file, MAX_BYTES);
  if ("flaw" in found && found.flaw !== "large") return [];
  if ("flaw" in found) throw refuse(file, found.detail);
  const input = found.content.toString("utf8");
  if (!hint.test(input)) return [];
  // git does not open the file itself: a pipe may have taken its place meanwhile.
  const { exitCode, stdout, cut = false } = await run(["git", "config", "--no-includes", "--file", "-", "-z", "--get-regexp", pattern], { cwd: "/", input });
  if (cut) throw refuse(file, "takes git too long to read, or says too much");
  return exitCode === 0 ? parseGitConfigList(stdout) : [];
}

function refuse(file: string, flaw: string): ConfigError {
  return new ConfigError({ what: `${quotePath(file)} ${flaw}`, expected: `a git configuration of at most ${MAX_BYTES} bytes`, fix: "shorten it, or remove it if you did not write it" });
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

type ConfigQuery = { run: HostRunner; file: string; hint: RegExp; pattern: string };
type FollowQuery = { run: HostRunner; file: string; workTree: string | null; home: string };
/** A path that git on the host follows, what it takes it for, and the file or link that names it where that is known. */
export type Followed = { fact: PathFact; as: "file" | "directory"; from: string | null };

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
    for (const { name, value } of await readGitConfig({ run, file: real, hint: /include|hookspath/i, pattern: FOLLOWED })) {
      const isHooks = name === "core.hookspath";
      const base = isHooks ? (workTree ?? dirname(real)) : dirname(real);
      const path = resolve(base, expandTilde(value, home));
      found.push(isHooks ? readHooksDirectory(path, current) : { fact: readInPlace(path), as: "file", from: current });
      if (!isHooks) queue.push(path);
    }
  }
  return found;
}

/** Looks at a hooks directory; for husky, which names `.husky/_` and runs what lies beside it, at the one above. */
export function readHooksDirectory(path: string, from: string | null): Followed {
  return { fact: readInPlace(basename(path) === "_" ? dirname(path) : path), as: "directory", from };
}

/** Looks at a path after the links on the way to it are resolved; whether it is a link itself is left to see. */
function readInPlace(path: string): PathFact {
  return readPathFact(join(resolvePath(dirname(path)) ?? dirname(path), basename(path)));
}

export function expandTilde(path: string, home: string): string {
  return path === "~" || path.startsWith("~/") ? `${home}${path.slice(1)}` : path;
}
