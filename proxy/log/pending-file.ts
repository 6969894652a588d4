import { closeSync, constants, fstatSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { PENDING_FILES, readPending, renderPending } from "../../policy/pending-lines.ts";

/** How long it is not written again: a box may end at any moment, and a flood shall not be held up. */
const PAUSE_MS = 2;
const PAUSE_PER_LINE_MS = 0.1;

/** The line of something that is counted, as it was at that count. */
export type Kept = { count: number; text: string };

/**
 * What is counted and not yet a line, as the lines it would become, beside the log: a box ends with its agent, at any moment and
 * without a word to its proxy. The next reader of the log, or the next process that writes it, takes them for lines.
 *
 * Files are written over in place and in turns: to replace one whole has the file system write it to the disk at once, which
 * held up every answer in between.
 */
export class PendingFile {
  private readonly slots: readonly { path: string; fd: number | undefined }[];
  private turn = 0;
  private isEmpty = true;
  private after = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(dir: string) {
    this.slots = PENDING_FILES.map((name) => ({ path: `${dir}/${name}`, fd: undefined }));
  }

  /** The lines that a process before left. */
  take(): string[] {
    return readPending(this.slots.map(({ path }) => readPlain(path)));
  }

  /** Keeps what `list` returns: at once, or soon where it was done just now. */
  keepSoon(list: () => readonly string[]): void {
    if (this.timer !== undefined) return;
    const wait = this.after - performance.now();
    if (wait <= 0) return this.keepNow(list);
    this.timer = setTimeout(() => this.keepNow(list), wait);
    this.timer.unref();
  }

  /** All of it has become lines of the log. */
  clear(): void {
    this.stopTimer();
    this.isEmpty = true;
    for (const slot of this.slots) {
      close(slot);
      try {
        unlinkSync(slot.path);
      } catch {
        // It was not there, or cannot be removed: then it is of an older session, or numbers nothing twice.
      }
    }
  }

  private keepNow(list: () => readonly string[]): void {
    this.stopTimer();
    const lines = list();
    if (lines.length > 0 || !this.isEmpty) this.write(lines);
    this.isEmpty = lines.length === 0;
    this.after = performance.now() + Math.max(PAUSE_MS, lines.length * PAUSE_PER_LINE_MS);
  }

  private stopTimer(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** A disk that does not take it costs no more than these lines. */
  private write(lines: readonly string[]): void {
    this.turn += 1;
    const slot = this.slots[this.turn % this.slots.length];
    if (slot === undefined) return;
    const { O_WRONLY, O_CREAT, O_NOFOLLOW } = constants;
    try {
      // Somebody may have removed it.
      if (slot.fd !== undefined && fstatSync(slot.fd).nlink === 0) close(slot);
      slot.fd ??= openSync(slot.path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o644);
      writeSync(slot.fd, renderPending(this.turn, lines), 0);
    } catch {
      close(slot);
    }
  }
}

function close(slot: { fd: number | undefined }): void {
  if (slot.fd !== undefined) closeSync(slot.fd);
  slot.fd = undefined;
}

function readPlain(path: string): string {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return readFileSync(fd, "utf8");
    } finally {
      closeSync(fd);
    }
  } catch {
    return "";
  }
}
