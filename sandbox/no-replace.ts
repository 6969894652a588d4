import { linkSync, lstatSync, mkdirSync, renameSync, rmdirSync, unlinkSync } from "node:fs";

/** File systems without hard links say one of these (FAT, some FUSE and network file systems). */
const NO_LINKS: ReadonlySet<unknown> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/**
 * Gives a file or link a new name, unless something has that name: Node lacks renameat2's RENAME_NOREPLACE, and
 * link(2) is the one call that fails there in the same step. A process killed between its two calls leaves both names.
 * Where a file system has no hard links, a look and a rename remain, and with them a gap in which a file that
 * appears is replaced. Throws the kernel's EEXIST.
 */
export function renameFileFreely(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && NO_LINKS.has(error.code))) throw error;
    if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) throw Object.assign(new Error(`${to} exists`), { code: "EEXIST" });
    renameSync(from, to);
    return;
  }
  unlinkSync(from);
}

/** The same for a directory: an empty one takes the name, which fails where it is taken, and rename(2) replaces none but an empty directory. */
export function renameDirectoryFreely(from: string, to: string): void {
  mkdirSync(to, 0o700);
  try {
    renameSync(from, to);
  } catch (error) {
    rmdirSync(to);
    throw error;
  }
}
