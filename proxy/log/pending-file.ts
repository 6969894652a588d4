import { constants, closeSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { DECISION_LOG_FILE, PENDING_FILE } from "../../policy/decision-record.ts";

/** How long it is not written again: a box may end at any moment, and a flood shall not be held up. */
const PAUSE_MS = 2;
const PAUSE_PER_LINE_MS = 0.02;

/** The line of something that is counted, as it was at that count. */
export type Kept = { count: number; text: string };

/**
 * What is counted and not yet a line, as the lines it would become, beside the log: a box ends with its agent, at any moment and
 * without a word to its proxy. The next reader of the log, or the next process that writes it, takes them for lines.
 */
export class PendingFile {
  private readonly path: string;
  private readonly draft: string;
  private isThere = true;
  private after = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(dir: string) {
    this.path = `${dir}/${PENDING_FILE}`;
    this.draft = `${dir}/.${PENDING_FILE}-${DECISION_LOG_FILE}`;
  }

  /** The lines that a process before left. */
  take(): string[] {
    try {
      const fd = openSync(this.path, constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        return readFileSync(fd, "utf8").split("\n").slice(0, -1);
      } finally {
        closeSync(fd);
      }
    } catch {
      return [];
    }
  }

  /** Keeps what `list` returns: at once, or soon where it was done just now. */
  keepSoon(list: () => readonly string[]): void {
    if (this.timer !== undefined) return;
    const wait = this.after - performance.now();
    if (wait <= 0) return this.keepNow(list);
    this.timer = setTimeout(() => this.keepNow(list), wait);
    this.timer.unref();
  }

  /** Replaces what is kept, whole; a disk that does not take it costs no more than these lines. */
  keep(lines: readonly string[]): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    try {
      if (lines.length > 0) this.write(lines);
      else if (this.isThere) unlinkSync(this.path);
      this.isThere = lines.length > 0;
    } catch {
      this.isThere = true;
    }
  }

  private keepNow(list: () => readonly string[]): void {
    const lines = list();
    this.keep(lines);
    this.after = performance.now() + Math.max(PAUSE_MS, lines.length * PAUSE_PER_LINE_MS);
  }

  private write(lines: readonly string[]): void {
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
    const fd = openSync(this.draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644);
    try {
      writeSync(fd, `${lines.join("\n")}\n`);
    } finally {
      closeSync(fd);
    }
    renameSync(this.draft, this.path);
  }
}
