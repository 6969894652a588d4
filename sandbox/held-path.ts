import { closeSync, constants, type Dir, fstatSync, lstatSync, opendirSync, openSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { GuardError } from "./errors.ts";

/** A directory that is held open: its number, and the canonical path at which it was judged. */
export type HeldDirectory = { readonly fd: number; readonly path: string };

/**
 * What the guard needs of a kernel to work without a gap between check and use. A number it returns is
 * the caller's to close.
 */
export type Handles = {
  /** Opens whatever stands at `text`, a link itself included, without waking it: no FIFO blocks, no device acts. Throws the kernel's error. */
  open(text: string): number;
  /** The text by which the kernel reaches `name` inside a held directory. */
  below(directory: HeldDirectory, name: string): string;
  /** The text by which the kernel reaches the opened thing itself. */
  itself(fd: number): string;
  /** Where the opened thing stands now, as a canonical path; `expected` is where the caller believes it. */
  placeOf(fd: number, expected: string): string;
};

/** O_PATH: a number that names a thing and cannot read it. Node's constants lack it. */
const O_PATH = 0o10000000;

/** Opens a link itself. On macOS that is O_SYMLINK, which happens to be the same bit, and needs no O_NOFOLLOW beside it. */
const LINK_ITSELF = process.platform === "linux" ? O_PATH | constants.O_NOFOLLOW : O_PATH;

/**
 * Linux: `/proc/self/fd/N` is a magic link that the kernel follows to the opened inode and to no name, so what
 * lies below it is looked up in that very directory, whoever renames or replaces it meanwhile. Reading the link tells
 * the real path of what was opened, after every link on the way.
 */
export const linuxHandles: Handles = {
  open: (text) => openSync(text, O_PATH | constants.O_NOFOLLOW),
  below: ({ fd }, name) => `/proc/self/fd/${fd}/${name}`,
  itself: (fd) => `/proc/self/fd/${fd}`,
  placeOf: (fd) => readlinkSync(`/proc/self/fd/${fd}`),
};

/**
 * Systems without /proc (macOS): a name is all that Node can give the kernel there. The thing is opened without
 * following its last component and compared by device and inode, and its path has to be canonical afterwards. What
 * remains is the moment between that comparison and the next call on a name inside the directory; the guard
 * is weaker there than on Linux, and docs/security.md says so.
 */
export const portableHandles: Handles = {
  open: openCompared,
  below: ({ path }, name) => `${path}/${name}`,
  itself: (fd) => `/dev/fd/${fd}`,
  placeOf: (fd, expected) => (isAt(fd, expected) ? expected : "(moved)"),
};

export const systemHandles: Handles = process.platform === "linux" ? linuxHandles : portableHandles;

/** Opens a directory for its names; undefined where it may be entered and not read, which is no reason to refuse what is in it. */
export function openReadable(text: string): Dir | undefined {
  try {
    return opendirSync(text);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EACCES") return undefined;
    throw error;
  }
}

function openCompared(text: string): number {
  const before = lstatSync(text);
  const isPlain = before.isFile() || before.isDirectory();
  // Without O_PATH a look would open a FIFO or a device, and wake it.
  if (!isPlain && !before.isSymbolicLink()) throw new GuardError("special-file", "kinds", { what: "a device, FIFO or socket stands there", expected: "a regular file" });
  const fd = openSync(text, (isPlain ? constants.O_RDONLY | constants.O_NOFOLLOW : LINK_ITSELF) | constants.O_NONBLOCK);
  if (isSame(before, fstatSync(fd))) return fd;
  closeSync(fd);
  throw Object.assign(new Error("exchanged while it was opened"), { code: "ELOOP" });
}

function isAt(fd: number, path: string): boolean {
  try {
    return realpathSync.native(path) === path && isSame(lstatSync(path), fstatSync(fd));
  } catch {
    return false;
  }
}

function isSame(one: Stats, other: Stats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
