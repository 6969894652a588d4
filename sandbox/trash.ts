import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmdirSync, unlinkSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { quotePath } from "../policy/parsed.ts";
import { FileError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import type { Handles, HeldDirectory } from "./held-path.ts";
import { OWN_PREFIX } from "./hidden-name.ts";
import type { Located } from "./located.ts";
import { renameDirectoryFreely, renameFileFreely } from "./no-replace.ts";
import { refusedLink } from "./path-walk.ts";
import { removeQuietly } from "./unfinished-write.ts";

const TRASH_NAME = `${OWN_PREFIX}trash`;

/** Time in milliseconds, chance, size in bytes: names sort by age, and the sum of sizes needs no file opened. */
const ID = /^\d{13}-[0-9a-f]{12}-(?<bytes>\d{1,16})$/;

const noteSchema = z.strictObject({
  version: z.literal(1),
  /** Where it stood, below the root. */
  path: z.string().min(1).max(4096),
  kind: z.enum(["file", "directory", "link"]),
  size: z.int().min(0),
  /** ISO 8601, UTC. */
  deletedAt: z.string(),
});

export type Trashed = z.infer<typeof noteSchema> & { trashId: string };

/** Where either is exceeded, the oldest deletions become final. */
export type TrashLimits = { entries: number; bytes: number };

/**
 * Deleted things of a root, in a directory of that root (a rename there is one step and costs no copy). Whoever has a shell can change
 * what lies in it, so nothing in it is believed: a note is parsed, and a restored path is judged like any other.
 */
export class Trash {
  readonly #handles: Handles;
  readonly #limits: TrashLimits;
  readonly #now: () => number;

  constructor({ handles, limits, now }: { handles: Handles; limits: TrashLimits; now: () => number }) {
    this.#handles = handles;
    this.#limits = limits;
    this.#now = now;
  }

  /** Moves what was located into the trash of its root and returns the id that brings it back. */
  put(located: Located): string {
    return this.#inside(located.grant, (directory) => {
      const now = this.#now();
      const trashId = `${String(now).padStart(13, "0")}-${randomBytes(6).toString("hex")}-${located.size}`;
      const note = { version: 1, path: located.relative, kind: located.kind, size: located.size, deletedAt: new Date(now).toISOString() };
      const notePath = this.#handles.below(directory, `${trashId}.json`);
      writeFileSync(notePath, JSON.stringify(note), { flag: "wx", mode: 0o600 });
      try {
        renameSync(located.sibling(located.name), this.#handles.below(directory, trashId));
      } catch (error) {
        removeQuietly(notePath);
        throw error;
      }
      this.#evict(directory);
      return trashId;
    });
  }

  /** What can be restored, oldest first. */
  list(grant: Grant): readonly Trashed[] {
    return this.#inside(grant, (directory) => this.#ids(directory).flatMap((id) => this.#readNote(directory, id) ?? []));
  }

  /** The path at which a deleted thing stood, for the guard to judge. Throws FileError ENOENT. */
  originOf(grant: Grant, trashId: string): string {
    return this.#inside(grant, (directory) => `${grant.root}/${this.#mustReadNote(directory, trashId).path}`);
  }

  /** Brings a deleted thing back to a path that was located for `create`. Throws FileError ENOENT, EEXIST. */
  restore(trashId: string, destination: Located): Trashed {
    return this.#inside(destination.grant, (directory) => {
      const trashed = this.#mustReadNote(directory, trashId);
      const from = this.#handles.below(directory, trashId);
      const restore = lstatSync(from).isDirectory() ? renameDirectoryFreely : renameFileFreely;
      restore(from, destination.sibling(destination.name));
      removeQuietly(this.#handles.below(directory, `${trashId}.json`));
      return trashed;
    });
  }

  #inside<T>(grant: Grant, use: (directory: HeldDirectory) => T): T {
    const text = this.#handles.below(grant.directory, TRASH_NAME);
    if (lstatSync(text, { throwIfNoEntry: false }) === undefined) mkdirSync(text, { mode: 0o700 });
    const directory = { fd: this.#handles.open(text), path: `${grant.root}/${TRASH_NAME}` };
    try {
      // A link planted under this name would take what is deleted out of the root.
      if (!fstatSync(directory.fd).isDirectory()) throw refusedLink(directory.path, "the trash is a directory of the root");
      return use(directory);
    } finally {
      closeSync(directory.fd);
    }
  }

  #ids(directory: HeldDirectory): string[] {
    return readdirSync(this.#handles.below(directory, "."))
      .filter((name) => ID.test(name))
      .toSorted();
  }

  #mustReadNote(directory: HeldDirectory, trashId: string): Trashed {
    const trashed = ID.test(trashId) ? this.#readNote(directory, trashId) : undefined;
    if (trashed === undefined) throw new FileError("ENOENT", { what: `nothing in the trash has the id ${quotePath(trashId)}` });
    return trashed;
  }

  #readNote(directory: HeldDirectory, trashId: string): Trashed | undefined {
    const text = this.#handles.below(directory, `${trashId}.json`);
    const stat = lstatSync(text, { throwIfNoEntry: false });
    if (stat?.isFile() !== true || stat.size > 65_536) return undefined;
    const fd = openSync(text, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const note = noteSchema.safeParse(parseJson(readFileSync(fd, "utf8")));
      return note.success ? { ...note.data, trashId } : undefined;
    } finally {
      closeSync(fd);
    }
  }

  #evict(directory: HeldDirectory): void {
    const ids = this.#ids(directory);
    let bytes = ids.reduce((sum, id) => sum + bytesOf(id), 0);
    // The newest stays whatever its size: the human who agreed to the deletion was promised a way back.
    for (let first = 0; first < ids.length - 1 && (ids.length - first > this.#limits.entries || bytes > this.#limits.bytes); first += 1) {
      const id = ids[first] ?? "";
      bytes -= bytesOf(id);
      this.#remove(this.#handles.below(directory, id));
      removeQuietly(this.#handles.below(directory, `${id}.json`));
    }
  }

  /** Deleted directories were empty; one that was filled in the trash since is left to its owner. */
  #remove(text: string): void {
    try {
      if (lstatSync(text).isDirectory()) rmdirSync(text);
      else unlinkSync(text);
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
    }
  }
}

function bytesOf(trashId: string): number {
  return Number(ID.exec(trashId)?.groups?.bytes ?? 0);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
