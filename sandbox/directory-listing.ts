import { closeSync, type Dir, lstatSync, opendirSync, type Stats } from "node:fs";
import type { Grant } from "./grant.ts";
import type { GrantManager } from "./grant-manager.ts";
import type { Handles, HeldDirectory } from "./held-path.ts";
import { isHiddenName, judgeOwnName } from "./hidden-name.ts";
import type { Located } from "./located.ts";
import { standsAt } from "./path-walk.ts";
import type { ListEntry } from "./request.ts";

/** Levels below the listed directory; each one holds two handles. */
const MOST_LEVELS = 200;

type Level = { directory: HeldDirectory; entries: Dir };

type Listing = {
  handles: Handles;
  grants: GrantManager;
  located: Located;
  isRecursive: boolean;
  /** Whether a directory below, by its canonical path, is entered as well. */
  mayEnter: (path: string) => boolean;
  /** Called where a directory is not entered that would have been: the listing is not all there is. */
  onCut: () => void;
};

/** No handle is left: of this process, or of the machine. */
const OUT_OF_HANDLES: readonly unknown[] = ["EMFILE", "ENFILE"];

/**
 * The entries of a directory in the order of the file system, parents before their contents. Links are named and never
 * followed. Names that the grant hides are left out; roots of other grants, and what `mayEnter` does not let in, are listed by
 * their names only.
 */
export function* listDirectory({ handles, grants, located, isRecursive, mayEnter, onCut }: Listing): Generator<ListEntry, void, undefined> {
  const { grant } = located;
  const levels: Level[] = [];
  try {
    levels.push(enter(handles, { fd: handles.open(located.inside(".")), path: located.path }));
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const name = level.entries.readSync()?.name;
      if (name === undefined) {
        leave(levels.pop());
        continue;
      }
      if (isLeftOut(grant, name)) continue;
      const path = `${level.directory.path}/${name}`;
      const stat = lstatSync(handles.below(level.directory, name), { throwIfNoEntry: false });
      if (stat === undefined) continue;
      yield { name, path, kind: kindOf(stat), size: stat.isFile() ? stat.size : 0 };
      if (!isRecursive || !stat.isDirectory() || grants.grantFor(grant.sessionId, path) !== grant || !mayEnter(path)) continue;
      if (levels.length >= MOST_LEVELS) {
        onCut();
        continue;
      }
      const below = openDirectory(handles, level.directory, name);
      if (below !== undefined) levels.push(below);
    }
  } finally {
    for (const level of levels) leave(level);
  }
}

/** A directory that may not be read, or went away, is listed by its name only; so is one that was exchanged for a link. */
function openDirectory(handles: Handles, parent: HeldDirectory, name: string): Level | undefined {
  const path = `${parent.path}/${name}`;
  try {
    const fd = handles.open(handles.below(parent, name));
    if (standsAt(handles, fd, { path, folds: true })) return enter(handles, { fd, path });
    closeSync(fd);
  } catch (error) {
    if (!(error instanceof Error && "code" in error) || OUT_OF_HANDLES.includes(error.code)) throw error;
  }
  return undefined;
}

/** Takes the held directory over: it is closed by `leave`, or here where it cannot be read. */
function enter(handles: Handles, directory: HeldDirectory): Level {
  try {
    return { directory, entries: opendirSync(handles.below(directory, ".")) };
  } catch (error) {
    closeSync(directory.fd);
    throw error;
  }
}

function leave(level: Level | undefined): void {
  if (level === undefined) return;
  level.entries.closeSync();
  closeSync(level.directory.fd);
}

function isLeftOut(grant: Grant, name: string): boolean {
  return judgeOwnName(name) === "never" || (!grant.hidden && isHiddenName(name));
}

function kindOf(stat: Stats): ListEntry["kind"] {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  return stat.isSymbolicLink() ? "link" : "other";
}
