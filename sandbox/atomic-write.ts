import { createHash, type Hash } from "node:crypto";
import { closeSync, constants, fchmodSync, fchownSync, fsync, lstatSync, openSync, renameSync, type Stats, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import { quotePath } from "../policy/parsed.ts";
import { FileError } from "./errors.ts";
import { PIECE_BYTES } from "./file-stream.ts";
import type { Located } from "./located.ts";
import { renameFileFreely } from "./no-replace.ts";
import { refusedLink } from "./path-walk.ts";
import type { Quota, QuotaUse } from "./quota.ts";
import type { FileContent } from "./request.ts";
import { makeUnfinishedName, removeQuietly } from "./unfinished-write.ts";

/** Contents up to this many bytes are written and read at once: faster than a promise, and too short to hold up others. */
export const AT_ONCE_BYTES = 256 * 1024;

export type Written = { size: number; digest: string; isNew: boolean };

const sync = promisify(fsync);

/**
 * Replaces a file, or makes a new one, so that whoever looks sees the old or the new contents and a killed process
 * leaves one of the two. What did not exist when it was judged is not replaced if it does now (EEXIST).
 */
export async function writeAtomically(located: Located, content: FileContent, { quota, mask }: { quota: Quota; mask: number }): Promise<Written> {
  const { sessionId } = located.grant;
  const taken: QuotaUse = { bytes: 0, files: 0 };
  const take = (use: QuotaUse) => {
    quota.take(sessionId, use);
    taken.bytes += use.bytes;
    taken.files += use.files;
  };
  take({ bytes: 0, files: 1 });
  const unfinished = located.sibling(makeUnfinishedName());
  const isNew = located.kind === "missing";
  let fd: number | undefined;
  try {
    fd = openSync(unfinished, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    const hash = createHash("sha256");
    await writePieces(fd, content, { hash, take });
    setRights(fd, isNew ? undefined : readTarget(located), mask);
    await sync(fd);
    // Minutes may have passed in the stream: the directory has to be where it was judged, and the grant in force.
    located.recheck();
    if (isNew) renameFileFreely(unfinished, located.sibling(located.name));
    else renameSync(unfinished, located.sibling(located.name));
    return { size: taken.bytes, digest: hash.digest("hex"), isNew };
  } catch (error) {
    if (fd !== undefined) removeQuietly(unfinished);
    quota.giveBack(sessionId, taken);
    throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

type Receiver = { hash: Hash; take: (use: QuotaUse) => void };

async function writePieces(fd: number, content: FileContent, receiver: Receiver): Promise<void> {
  if (typeof content !== "string" && !(content instanceof Uint8Array)) {
    for await (const piece of content) await writeSlices(fd, piece, receiver);
    return;
  }
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  if (bytes.length > AT_ONCE_BYTES) return writeSlices(fd, bytes, receiver);
  receiver.take({ bytes: bytes.length, files: 0 });
  receiver.hash.update(bytes);
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

async function writeSlices(fd: number, bytes: Uint8Array, { hash, take }: Receiver): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const slice = bytes.subarray(at, at + PIECE_BYTES);
    take({ bytes: slice.length, files: 0 });
    // The kernel copies on another thread while this one digests.
    const written = writeAll(fd, slice);
    hash.update(slice);
    await written;
  }
}

async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const from = done;
    done += await new Promise<number>((resolve, reject) => {
      write(fd, bytes, from, bytes.length - from, null, (error, count) => (error === null ? resolve(count) : reject(error)));
    });
  }
}

/** What will be replaced, as it is now: someone may have changed its rights since it was judged. */
function readTarget(located: Located): Stats | undefined {
  const stat = lstatSync(located.sibling(located.name), { throwIfNoEntry: false });
  if (stat === undefined || stat.isFile()) return stat;
  throw stat.isDirectory()
    ? new FileError("EISDIR", { what: `${quotePath(located.path)} is a directory by now` })
    : refusedLink(located.path, "it was exchanged after it had been judged");
}

/** The replaced file's rights and owner, as far as the system lets us; set-uid bits go, as on every write. */
function setRights(fd: number, old: Stats | undefined, mask: number): void {
  if (old !== undefined && (old.uid !== process.geteuid?.() || old.gid !== process.getegid?.())) giveOwner(fd, old);
  fchmodSync(fd, old === undefined ? 0o644 & ~mask : old.mode & 0o777);
}

function giveOwner(fd: number, { uid, gid }: Stats): void {
  try {
    fchownSync(fd, uid, gid);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) throw error;
  }
}
