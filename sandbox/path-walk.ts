import { closeSync, fstatSync, readlinkSync, type Stats } from "node:fs";
import { quotePath } from "../policy/parsed.ts";
import { foldName } from "../policy/sandbox-name.ts";
import { findRealName } from "./case-folding.ts";
import { FileError, GuardError } from "./errors.ts";
import type { FoldingMemory } from "./folding-memory.ts";
import { isWithin } from "./forbidden-root.ts";
import type { Grant } from "./grant.ts";
import type { Handles, HeldDirectory } from "./held-path.ts";

/** As many links as the kernel follows in one path. */
const MOST_LINKS = 40;

/** Names that one path leads through, links included: far more than a path of use has, and few enough that nobody waits for one. */
const MOST_NAMES = 1000;

/** What stands at the end of a path. The numbers are the receiver's to close. */
export type Found = {
  /** Canonical: no link, no `..`, and the names as the directories have them. */
  path: string;
  name: string;
  /** The directory that holds the name; undefined for the root itself. */
  parent: HeldDirectory | undefined;
  /** The thing, opened without the right to read; undefined where nothing has the name. */
  object: { fd: number; stat: Stats } | undefined;
  /** True where a directory on the way folds case. */
  folds: boolean;
};

export type Route = {
  handles: Handles;
  folding: FoldingMemory;
  grant: Grant;
  /** Below the root; `..` among them is allowed and means the parent of the real directory, as for the kernel. */
  names: readonly string[];
  /** Whether a link at the very end is followed, or is itself what is meant. */
  followLast: boolean;
  isDirectory: boolean;
};

/**
 * Goes from the root's handle to a path, one name at a time, each looked up in the directory opened before: a directory that
 * is exchanged on the way changes nothing for what is held already. Links are followed by this same walk, inside
 * the root only. Throws GuardError `link` or `outside-roots`, FileError ENOENT or ENOTDIR.
 */
export function walkPath(route: Route): Found {
  const { handles, grant } = route;
  const way: HeldDirectory[] = [{ fd: handles.open(handles.below(grant.directory, ".")), path: grant.root }];
  try {
    const found = followNames(route, way);
    closeAll(way);
    return found;
  } catch (error) {
    closeAll(way);
    throw error;
  }
}

function followNames(route: Route, way: HeldDirectory[]): Found {
  const { handles, folding, grant } = route;
  const queue = route.names.toReversed();
  let links = 0;
  let names = 0;
  let folds = false;
  let told = true;
  for (;;) {
    const top = last(way);
    const name = queue.pop();
    if (name === undefined) return takeDirectory(way, folds);
    if ((names += 1) > MOST_NAMES) throw new FileError("ENAMETOOLONG", { what: `the path below ${quotePath(grant.root)} leads through more than ${MOST_NAMES} names` });
    if (name === "..") {
      if (way.length === 1) throw leavesRoot(grant, links > 0);
      closeSync(top.fd);
      way.pop();
      continue;
    }
    const seen = folding.look(top, name);
    told &&= seen !== undefined;
    folds ||= seen === true;
    if (told) folding.rememberWay(top.path, folds);
    const real = folds ? findRealName(handles, top, name) : name;
    const path = `${top.path}/${real}`;
    const object = openChild(handles, top, real);
    if (object === undefined) {
      if (queue.length > 0) throw new FileError("ENOENT", { what: `${quotePath(path)} does not exist` });
      way.pop();
      return { path, name: real, parent: top, object, folds };
    }
    const { fd, stat } = object;
    if (stat.isDirectory()) {
      way.push({ fd, path });
      continue;
    }
    if (stat.isSymbolicLink() && (queue.length > 0 || route.followLast)) {
      closeSync(fd);
      links += 1;
      if (links > MOST_LINKS) throw refusedLink(path, "more than 40 links follow each other");
      const target = readTarget(handles.below(top, real), path);
      if (target.startsWith("/")) closeAll(way.splice(1));
      queue.push(...namesOfTarget(target, grant, path).toReversed());
      continue;
    }
    if (queue.length > 0 || route.isDirectory) {
      closeSync(fd);
      throw new FileError("ENOTDIR", { what: `${quotePath(path)} is no directory` });
    }
    way.pop();
    return { path, name: real, parent: top, object, folds };
  }
}

function takeDirectory(way: HeldDirectory[], folds: boolean): Found {
  const directory = last(way);
  way.pop();
  const parent = way.pop();
  const { fd, path } = directory;
  return { path, name: path.slice(path.lastIndexOf("/") + 1), parent, object: { fd, stat: fstatSync(fd) }, folds };
}

/** True while an opened thing stands where it was found. Spellings in a folding directory are one place. */
export function standsAt(handles: Handles, fd: number, { path, folds }: { path: string; folds: boolean }): boolean {
  const place = handles.placeOf(fd, path);
  return place === path || (folds && foldName(place) === foldName(path));
}

/** Opens a name of a held directory; undefined where there is none. */
export function openChild(handles: Handles, directory: HeldDirectory, name: string): Found["object"] {
  let fd: number;
  try {
    fd = handles.open(handles.below(directory, name));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  return { fd, stat: fstatSync(fd) };
}

/** The text may be another link's by now, which is harmless: it is walked like any text. */
function readTarget(text: string, path: string): string {
  try {
    return readlinkSync(text);
  } catch (error) {
    throw refusedLink(path, "it was exchanged while it was looked at", error);
  }
}

function namesOfTarget(target: string, grant: Grant, path: string): string[] {
  const inside = target.startsWith("/") ? belowRoot(target, grant) : target;
  if (inside === undefined) throw refusedLink(path, "it leads out of the root");
  return inside.split("/").filter((name) => name !== "" && name !== ".");
}

function belowRoot(target: string, { root, alias }: Grant): string | undefined {
  const base = [root, alias].find((place) => place !== undefined && isWithin(target, place));
  return base === undefined ? undefined : target.slice(base.length);
}

function leavesRoot(grant: Grant, byLink: boolean): GuardError {
  return byLink
    ? refusedLink(grant.root, "a link below it leads out of it")
    : new GuardError("outside-roots", "roots", { what: `the path leaves the root ${quotePath(grant.root)} by two dots` });
}

export function refusedLink(path: string, why: string, cause?: unknown): GuardError {
  return new GuardError("link", "links", { what: `${quotePath(path)} is not followed: ${why}`, expected: "links that stay inside the granted root" }, { cause });
}

function last(way: readonly HeldDirectory[]): HeldDirectory {
  const top = way.at(-1);
  if (top === undefined) throw new Error("a walk always holds its root");
  return top;
}

function closeAll(way: readonly HeldDirectory[]): void {
  for (const { fd } of way) closeSync(fd);
}
