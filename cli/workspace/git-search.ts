import { opendirSync, type Dirent } from "node:fs";
import { basename, join } from "node:path";
import { errorCode } from "./path-fact.ts";

/** How far a search goes. Both are checked between entries: one directory with millions of them must not hold up the end. */
export type SearchLimits = { directories: number; ms: number };

/** What was found below some directories. `searched` counts directories; `complete` is false when a limit ended the search. */
type GitSearch = {
  /** Directories that git takes for a repository, whatever their names: git works in a bare one too. */
  directories: string[];
  /** `.git` files and links, which say where a repository is. */
  pointers: string[];
  /** Directories that could not be listed. */
  unread: string[];
  searched: number;
  complete: boolean;
};

type SearchQuery = { roots: readonly string[]; skip: (path: string) => boolean; limits: SearchLimits };

/**
 * Looks for repositories below `roots`, outer directories first; links are not followed. Never throws for
 * what it finds: the box chooses names, modes and depth.
 */
export function findRepositories({ roots, skip, limits }: SearchQuery): GitSearch {
  const end = performance.now() + limits.ms;
  const search: GitSearch = { directories: [], pointers: [], unread: [], searched: 0, complete: true };
  const queue = roots.filter((path) => !skip(path));
  const isOver = (): boolean => performance.now() > end;
  for (let path = queue.at(0); path !== undefined; path = queue[search.searched]) {
    if (search.searched >= limits.directories || isOver()) return { ...search, complete: false };
    search.searched += 1;
    try {
      const { inner, names, complete } = scanDirectory(path, { room: limits.directories - queue.length, isOver });
      queue.push(...inner.filter((one) => !skip(one)));
      search.complete &&= complete;
      if (looksLikeRepository(names)) search.directories.push(path);
      if (names.has(".git")) search.pointers.push(join(path, ".git"));
    } catch (error) {
      if (!isGone(error, path)) search.unread.push(path);
    }
  }
  return search;
}

/** Yields what a directory holds, a few entries at a time. */
export function* listEntries(path: string): Generator<Dirent> {
  const directory = opendirSync(path, { bufferSize: 256 });
  try {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) yield entry;
  } finally {
    directory.closeSync();
  }
}

const MARKS = new Set([".git", "head", "objects", "refs", "commondir"]);
const CHECK_EVERY = 1024;

type Bounds = { room: number; isOver: () => boolean };
type Scan = { inner: string[]; names: Set<string>; complete: boolean };

/** Lists the directories in one and notes the names that mark a repository; a directory called `.git` is none of these. */
function scanDirectory(path: string, { room, isOver }: Bounds): Scan {
  const scan: Scan = { inner: [], names: new Set(), complete: true };
  let count = 0;
  for (const entry of listEntries(path)) {
    count += 1;
    if (count % CHECK_EVERY === 0 && isOver()) return { ...scan, complete: false };
    // Some disks take HEAD and head for the same.
    const name = entry.name.toLowerCase();
    if (MARKS.has(name) && !(name === ".git" && entry.isDirectory())) scan.names.add(name);
    if (!entry.isDirectory()) continue;
    if (scan.inner.length < room) scan.inner.push(join(path, entry.name));
    else scan.complete = false;
  }
  return scan;
}

/** git wants HEAD, and objects and refs either beside it or where `commondir` points. */
function looksLikeRepository(names: ReadonlySet<string>): boolean {
  return names.has("head") && (names.has("commondir") || (names.has("objects") && names.has("refs")));
}

/** Whether it was removed meanwhile. A name that is not UTF-8 is never found either, and may hide anything. */
function isGone(error: unknown, path: string): boolean {
  return ["ENOENT", "ENOTDIR"].includes(errorCode(error)) && !basename(path).includes("\u{fffd}");
}
