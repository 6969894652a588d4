import { hash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, unlinkSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { quotePath } from "../policy/parsed.ts";
import { AT_ONCE_BYTES, writeAtomically, type Written } from "./atomic-write.ts";
import { listDirectory } from "./directory-listing.ts";
import { DirectorySyncs } from "./directory-syncs.ts";
import { asFileError, FileError } from "./errors.ts";
import { FileStream, readWhole } from "./file-stream.ts";
import type { Grant } from "./grant.ts";
import type { GrantManager } from "./grant-manager.ts";
import { type Handles, systemHandles } from "./held-path.ts";
import { endedGrant, type Located } from "./located.ts";
import { renameDirectoryFreely, renameFileFreely } from "./no-replace.ts";
import { Quota } from "./quota.ts";
import type { FileContent, ListEntry } from "./request.ts";
import { Trash, type Trashed, type TrashLimits } from "./trash.ts";
import { UnfinishedWrites } from "./unfinished-write.ts";

export type FileSystemDriverOptions = {
  grants: GrantManager;
  handles?: Handles;
  quota?: Quota;
  trash?: TrashLimits;
  /** The time of day in milliseconds. */
  now?: () => number;
};

/** Large files come as a stream, whose own digest is known at its end. */
export type ReadFile = { size: number; content: Uint8Array; digest: string } | { size: number; content: FileStream; digest: undefined };

/** A listing is an answer in one piece, and several may be on their way at once. */
const MOST_LISTED = 2 * 1024 * 1024;

/**
 * Performs what was judged, through the handles of the judgement. Every method throws GuardError where the judgement no longer holds
 * and FileError where the file system refuses. Closing what was located is the caller's.
 */
export class FileSystemDriver {
  readonly #grants: GrantManager;
  readonly #handles: Handles;
  readonly #quota: Quota;
  readonly #trash: Trash;
  readonly #unfinished: UnfinishedWrites;
  readonly #syncs = new DirectorySyncs();
  /** Read once: asking for it sets it for a moment. */
  readonly #mask = process.umask();

  constructor({ grants, handles = systemHandles, quota = new Quota(), trash, now = Date.now }: FileSystemDriverOptions) {
    this.#grants = grants;
    this.#handles = handles;
    this.#quota = quota;
    this.#trash = new Trash({ handles, limits: trash ?? { entries: 1000, bytes: 1024 ** 3 }, now });
    this.#unfinished = new UnfinishedWrites(now);
  }

  /** Reads a file that was located for `read`: bytes up to 256 KiB, a stream above. */
  async read(located: Located): Promise<ReadFile> {
    return perform(located, () => {
      const { itself, size, path } = located;
      if (size > AT_ONCE_BYTES) return { size, content: new FileStream({ itself, size, path }), digest: undefined };
      const content = readWhole(itself, size);
      return { size: content.length, content, digest: hash("sha256", content) };
    });
  }

  /** Writes a file that was located for `write` or `create`. What was missing when it was judged is not replaced (EEXIST). */
  async write(located: Located, content: FileContent): Promise<Written> {
    return performAsync(located, async () => {
      if (located.wantsDirectory) throw new FileError("EISDIR", { what: `${quotePath(located.path)} was to be a directory` });
      this.#unfinished.sweep(located);
      const written = await writeAtomically(located, content, { quota: this.#quota, mask: this.#mask });
      this.#syncs.note(located);
      return written;
    });
  }

  /** Makes a directory at a path that was located for `create`. */
  async createDirectory(located: Located): Promise<void> {
    return performAsync(located, async () => {
      this.#quota.take(located.grant.sessionId, { bytes: 0, files: 1 });
      mkdirSync(located.sibling(located.name), { mode: 0o755 });
      this.#syncs.note(located);
    });
  }

  /** Deletes a file, a link or an empty directory that was located for `delete`; into the trash where the grant has one. */
  async delete(located: Located): Promise<{ trashId: string | undefined }> {
    return performAsync(located, async () => {
      const trashId = located.grant.trash ? this.#putIntoTrash(located) : undefined;
      if (trashId === undefined) removeFinally(located);
      this.#syncs.note(located);
      return { trashId };
    });
  }

  /** Renames what `locateMove` located. A destination that exists is replaced only with `overwrite`, otherwise it throws EEXIST. */
  async move(source: Located, destination: Located, { overwrite }: { overwrite: boolean }): Promise<void> {
    return performAsync(destination, async () => {
      source.recheck();
      judgeEnds(source, destination);
      const from = source.sibling(source.name);
      const to = destination.sibling(destination.name);
      if (destination.kind !== "missing") {
        if (!overwrite) throw new FileError("EEXIST", { what: `${quotePath(destination.path)} exists already` });
        replace(from, to);
      } else if (source.kind === "directory") renameDirectoryFreely(from, to);
      else renameFileFreely(from, to);
      this.#syncs.note(destination);
      if (source.parent.path !== destination.parent.path) this.#syncs.note(source);
    });
  }

  /**
   * The entries of a directory that was located for `list`, at most `limit` and MOST_LISTED characters of paths; `truncated` where
   * there are more. `mayEnter` is asked about each directory below.
   */
  async list(located: Located, { recursive, limit, mayEnter = () => true }: { recursive: boolean; limit: number; mayEnter?: (path: string) => boolean }): Promise<{ entries: ListEntry[]; truncated: boolean }> {
    return performAsync(located, async () => {
      const entries: ListEntry[] = [];
      let listed = 0;
      let isCut = false;
      for (const entry of listDirectory({ handles: this.#handles, grants: this.#grants, located, isRecursive: recursive, mayEnter, onCut: () => (isCut = true) })) {
        listed += entry.path.length;
        if (entries.length === limit || listed > MOST_LISTED) return { entries, truncated: true };
        entries.push(entry);
        if (entries.length % 1000 !== 0) continue;
        await setImmediate();
        located.recheck();
      }
      return { entries, truncated: isCut };
    });
  }

  /** Waits until all names that were changed are on the disk too; for the end of a task. Throws FileError where one is not. */
  async settle(): Promise<void> {
    await this.#syncs.settle();
  }

  /** What lies in the trash of a root, oldest first. */
  trashed(grant: Grant): readonly Trashed[] {
    return this.#trash.list(this.#mustLive(grant));
  }

  /** The path at which a deleted thing stood; the guard judges it like one to be created. */
  originOf(grant: Grant, trashId: string): string {
    return this.#trash.originOf(this.#mustLive(grant), trashId);
  }

  /** Brings a deleted thing back to a path that was located for `create`. */
  async restore(trashId: string, destination: Located): Promise<void> {
    return performAsync(destination, async () => {
      this.#trash.restore(trashId, destination);
      this.#syncs.note(destination);
    });
  }

  /** The root's handle is closed with its grant, and its number soon another file's. */
  #mustLive(grant: Grant): Grant {
    if (this.#grants.isLive(grant)) return grant;
    throw endedGrant(grant);
  }

  #putIntoTrash(located: Located): string {
    if (located.kind === "directory" && readdirSync(located.inside(".")).length > 0) throw new FileError("ENOTEMPTY", { what: `${quotePath(located.path)} is not empty` });
    return this.#trash.put(located);
  }
}

function perform<T>(located: Located, operate: () => T): T {
  try {
    located.recheck();
    return operate();
  } catch (error) {
    throw asFileError(error, located.path);
  }
}

async function performAsync<T>(located: Located, operate: () => Promise<T>): Promise<T> {
  try {
    located.recheck();
    return await operate();
  } catch (error) {
    throw asFileError(error, located.path);
  }
}

function removeFinally(located: Located): void {
  const text = located.sibling(located.name);
  if (located.kind === "directory") rmdirSync(text);
  else unlinkSync(text);
}

/** A name that replaced itself would be deleted as its own twin, below. */
function judgeEnds(source: Located, destination: Located): void {
  if (source.path === destination.path) throw new FileError("EINVAL", { what: `${quotePath(source.path)} is source and destination` });
  if (destination.wantsDirectory && source.kind !== "directory") throw new FileError("ENOTDIR", { what: `${quotePath(source.path)} is no directory` });
}

/** rename(2) does nothing where both names are the same file already, and says that it succeeded: the source is a second name then, and goes. */
function replace(from: string, to: string): void {
  const source = lstatSync(from);
  renameSync(from, to);
  const left = lstatSync(from, { throwIfNoEntry: false });
  if (left !== undefined && left.ino === source.ino && left.dev === source.dev && left.nlink > 1) unlinkSync(from);
}
