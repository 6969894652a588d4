import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { DecisionRecord } from "../../policy/decision-record.ts";
import { parseDecision, readDecisionFiles } from "./decision-files.ts";

const POLL_MS = 150;
const CHUNK_BYTES = 64 * 1024;

export type Following = {
  /** The live file of the log. */
  file: string;
  /** Takes each record once, in order. */
  take: (record: DecisionRecord) => Promise<void>;
  /** Whether nobody writes it any more; then what is left is read and the following ends. */
  isOver: () => Promise<boolean>;
  signal: AbortSignal;
};

/** Hands on what was and is decided, over rotations of the files, until that or `signal` ends. */
export async function followDecisions({ file, take, isOver, signal }: Following): Promise<void> {
  let last = -1;
  const takeNew = async (records: readonly DecisionRecord[]): Promise<void> => {
    for (const record of records) {
      if (record.seq <= last) continue;
      last = record.seq;
      await take(record);
    }
  };
  let tail = openTail(file);
  try {
    // Opened before the whole is read: what is written in between is in both.
    await takeNew(readDecisionFiles(file, { withPending: false }).records);
    while (!signal.aborted) {
      const over = await isOver();
      if (tail !== undefined) await takeNew(readOn(tail));
      if (tail === undefined || tail.inode !== inodeOf(file)) {
        if (tail !== undefined) closeSync(tail.handle);
        tail = openTail(file);
        await takeNew(readDecisionFiles(file, { withPending: false }).records);
      }
      if (over) return await takeNew(readDecisionFiles(file).records);
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    if (tail !== undefined) closeSync(tail.handle);
  }
}

type Tail = { handle: number; inode: number; offset: number; rest: Buffer };

/** Opens the live file at its end; undefined while there is none. A link in its place is not followed. */
function openTail(file: string): Tail | undefined {
  try {
    const handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { ino, size } = fstatSync(handle);
    return { handle, inode: ino, offset: size, rest: Buffer.alloc(0) };
  } catch {
    return undefined;
  }
}

function readOn(tail: Tail): DecisionRecord[] {
  const found: DecisionRecord[] = [];
  for (;;) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const bytes = readSync(tail.handle, chunk, 0, CHUNK_BYTES, tail.offset);
    if (bytes === 0) return found;
    tail.offset += bytes;
    const text = Buffer.concat([tail.rest, chunk.subarray(0, bytes)]);
    const end = text.lastIndexOf(0x0a) + 1;
    tail.rest = Buffer.from(text.subarray(end));
    for (const line of text.subarray(0, end).toString("utf8").split("\n")) {
      const record = parseDecision(line);
      if (record !== undefined) found.push(record);
    }
  }
}

function inodeOf(file: string): number | undefined {
  return lstatSync(file, { throwIfNoEntry: false })?.ino;
}
