import { lstatSync, statSync, type Stats } from "node:fs";
import { join, relative } from "node:path";
import { quotePath } from "../../policy/parsed.ts";
import { readPointer } from "./git-directory.ts";
import { findRepositories, listEntries, type SearchLimits } from "./git-search.ts";
import { isWithin, readPathFact, resolvePath } from "./path-fact.ts";
import type { WorkspacePlan } from "./plan.ts";

const LIMITS: SearchLimits = { directories: 50_000, ms: 2000 };
const MAX_NAMED = 5;
const MAX_HOOKS = 1000;
const CLOCK_SLACK_MS = 50;

type Box = Pick<WorkspacePlan, "project" | "roots" | "guarded">;

/**
 * Notes the time, and returns what tells afterwards, as warnings, which git repositories were made in the
 * meantime or had their configuration or hooks changed. No mount can keep a box from making them, and
 * git on the host runs what they name: at a mere `git status` in the project too, once its index lists
 * the directory as a submodule.
 *
 * Times decide, since listing the project beforehand would slow every start. The box cannot set the
 * time of a change (ctime) or of birth. It can move a directory that it did not make, and hide the move.
 */
export function trackRepositories({ project, roots, guarded }: Box, limits: SearchLimits = LIMITS): () => string[] {
  const clock = startClock();
  const protectedPaths = new Set(guarded.map(({ path }) => path));
  const protectedDirectories = new Set(guarded.filter(({ kind }) => kind === "directory").map(({ path }) => path));
  return () => {
    const since = clock();
    const search = findRepositories({ roots: roots.map(({ path }) => path), skip: (path) => protectedDirectories.has(path), limits });
    const suspects = [
      ...search.directories.filter((path) => isDirectoryTouched(path, since)),
      ...search.pointers.filter((path) => !protectedPaths.has(path) && isNew(look(lstatSync, path), since)),
    ];
    const told = suspects.filter((path) => !isProtected(path, protectedPaths));
    const hidden = search.unread.filter((path) => isHidden(path, since));
    return [
      ...(told.length === 0 ? [] : [describeTold(nameSome(told, project))]),
      ...(hidden.length === 0 ? [] : [`could not look into ${nameSome(hidden, project)} for git repositories that were made while the box ran: look there before git does`]),
      ...(search.complete ? [] : [`the search for git repositories that were made while the box ran ended early, after ${search.searched} directories: there may be more`]),
    ];
  };
}

function describeTold(names: string): string {
  return (
    `git repositories were made or changed while the box ran: ${names}; the configuration and the hooks of each can run commands on this machine ` +
    "as soon as git, or an editor that calls git, works there or in the project: read its config and hooks before that, or remove it"
  );
}

/** Returns what gives the time of the start, also when the clock was set back since. */
function startClock(): () => number {
  const [wall, steady] = [Date.now(), performance.now()];
  return () => {
    const back = wall + (performance.now() - steady) - Date.now();
    // A file made just before may share the millisecond; a box takes many to start.
    return back > CLOCK_SLACK_MS ? wall - back : wall + 1;
  };
}

/** Whether a git directory is new, or what git runs from it is. Commits change the rest of it, and are no matter. */
function isDirectoryTouched(path: string, since: number): boolean {
  const stat = look(lstatSync, path);
  if (stat !== null && (stat.birthtimeMs >= since || wasMoved(stat, since))) return true;
  const places = [...new Set([path, findCommonDirectory(path)])];
  return places.some((place) => {
    const files = ["config", "config.worktree", "commondir", "hooks"].map((name) => join(place, name));
    return files.some((file) => isTouched(file, since)) || isAnyHookTouched(join(place, "hooks"), since);
  });
}

/** A rename sets the time of change alone; whatever git does in a directory sets that of its content too. */
function wasMoved({ ctimeMs, mtimeMs }: Stats, since: number): boolean {
  return ctimeMs >= since && mtimeMs < since;
}

function isAnyHookTouched(hooks: string, since: number): boolean {
  let count = 0;
  try {
    for (const { name } of listEntries(hooks)) {
      count += 1;
      if (count > MAX_HOOKS || isTouched(join(hooks, name), since)) return true;
    }
  } catch {
    // No hooks, or none that git could read.
  }
  return false;
}

/** Whether the file, or what it leads to as a link, changed. */
function isTouched(path: string, since: number): boolean {
  return [look(lstatSync, path), look(statSync, path)].some((stat) => isNew(stat, since));
}

function isNew(stat: Stats | null, since: number): boolean {
  return stat !== null && stat.ctimeMs >= since;
}

/** A directory that cannot be listed may still let git through. Old ones (a database's, say) are not told every time. */
function isHidden(path: string, since: number): boolean {
  const stat = look(lstatSync, path);
  return stat === null || stat.ctimeMs >= since;
}

/**
 * Whether git would obey protected files only: the repository that was mounted, a worktree that the box
 * added to it, a submodule checked out from it. Anything that cannot be read is not protected.
 */
function isProtected(path: string, protectedPaths: ReadonlySet<string>): boolean {
  const gitDir = findGitDirectory(path);
  if (gitDir === null) return false;
  const common = findCommonDirectory(gitDir);
  const own = join(gitDir, "config.worktree");
  const held = ["config", "hooks"].every((name) => protectedPaths.has(join(common, name)));
  return held && (protectedPaths.has(own) || isMissing(own));
}

function findGitDirectory(path: string): string | null {
  try {
    const fact = readPathFact(path);
    const target = fact.kind === "file" ? readPointer(fact, "gitdir: ") : path;
    return target === null ? null : resolvePath(target);
  } catch {
    return null;
  }
}

function findCommonDirectory(gitDir: string): string {
  try {
    const pointer = readPointer(readPathFact(join(gitDir, "commondir")));
    return (pointer === null ? null : resolvePath(pointer)) ?? gitDir;
  } catch {
    return gitDir;
  }
}

function isMissing(path: string): boolean {
  try {
    return readPathFact(path).kind === "missing";
  } catch {
    return false;
  }
}

function nameSome(paths: readonly string[], project: string): string {
  const names = paths.slice(0, MAX_NAMED).map((path) => quotePath(isWithin(path, project) ? relative(project, path) || "." : path));
  return `${names.join(", ")}${paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : ""}`;
}

function look(read: (path: string) => Stats, path: string): Stats | null {
  try {
    return read(path);
  } catch {
    return null;
  }
}
