import { randomBytes } from "node:crypto";
import { lstatSync, unlinkSync } from "node:fs";
import { OWN_PREFIX } from "./hidden-name.ts";
import { openReadable } from "./held-path.ts";
import type { Located } from "./located.ts";

/** A write that lasts longer than this between two pieces may lose its file to another process's sweep, and fails then. */
const ABANDONED_MS = 60_000;

const UNFINISHED = /^\.agentbox-[0-9a-f]{24}$/;

/** A name for a file that is being written, in the directory where it will stand: a rename across file systems is not atomic. */
export function makeUnfinishedName(): string {
  return `${OWN_PREFIX}${randomBytes(12).toString("hex")}`;
}

/** Removes what killed processes left beside files; each directory once a process, since looking costs by its entries. */
export class UnfinishedWrites {
  readonly #swept = new Set<string>();
  readonly #now: () => number;

  /** `now` is the time of day in milliseconds, as files have it. */
  constructor(now: () => number) {
    this.#now = now;
  }

  sweep(located: Located): void {
    const directory = located.parent.path;
    if (this.#swept.has(directory)) return;
    if (this.#swept.size >= 10_000) this.#swept.clear();
    this.#swept.add(directory);
    const entries = openReadable(located.sibling("."));
    if (entries === undefined) return;
    try {
      for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
        if (UNFINISHED.test(entry.name)) this.#removeAbandoned(located.sibling(entry.name));
      }
    } finally {
      entries.closeSync();
    }
  }

  /** Ours are files of our user; a name alone is anybody's to choose. */
  #removeAbandoned(text: string): void {
    const stat = lstatSync(text, { throwIfNoEntry: false });
    if (stat?.isFile() === true && stat.uid === process.geteuid?.() && this.#now() - stat.mtimeMs > ABANDONED_MS) removeQuietly(text);
  }
}

/** Removes a file of ours; that another process was faster, or a lost directory, is no failure of the operation. */
export function removeQuietly(text: string): void {
  try {
    unlinkSync(text);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
