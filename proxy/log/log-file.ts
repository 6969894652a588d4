import { closeSync, constants, existsSync, fstatSync, ftruncateSync, lstatSync, openSync, readSync, renameSync, writeSync } from "node:fs";
import { DECISION_LOG_FILE } from "../../policy/decision-record.ts";

const MAX_BYTES = 8 * 1024 * 1024;
const OLDER_FILES = 3;
const TAIL_BYTES = 64 * 1024;

/**
 * The file of a session's decision log: lines are appended at once, and past 8 MiB the file becomes `.1`,
 * the older ones `.2` and `.3`. Writing is synchronous: an answer leaves only when its line is in the file.
 */
export class LogFile {
  private readonly path: string;
  private readonly maxBytes: number;
  private fd: number | undefined;
  private size = 0;
  /** Bytes of a line that a full disk took only in part, or not at all. */
  private rest: Buffer = Buffer.alloc(0);

  constructor(dir: string, maxBytes = MAX_BYTES) {
    this.path = `${dir}/${DECISION_LOG_FILE}`;
    this.maxBytes = maxBytes;
  }

  /** The last whole line of the log, in the live file or the one before; undefined for a new log. A line that a crash cut short is removed. */
  readLastLine(): string | undefined {
    const live = this.open();
    this.size = cutTornLine(live);
    const line = lastLine(live);
    if (line !== undefined || !existsSync(`${this.path}.1`)) return line;
    const older = openSync(`${this.path}.1`, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      return lastLine(older);
    } finally {
      closeSync(older);
    }
  }

  /** Appends a line. Throws what the system says; the line is kept then, and written first when `flush` succeeds. */
  append(line: string): void {
    this.rest = Buffer.concat([this.rest, Buffer.from(`${line}\n`)]);
    this.flush();
  }

  /** Writes what is still to be written. Throws what the system says. */
  flush(): void {
    if (this.size >= this.maxBytes) this.rotate();
    const fd = this.open();
    while (this.rest.length > 0) {
      const written = writeSync(fd, this.rest);
      this.size += written;
      this.rest = this.rest.subarray(written);
    }
  }

  /** Makes the file anew where it was removed or moved away: what is written into a file without a name is lost. Throws what the system says. */
  restore(): void {
    if (this.fd === undefined) return;
    const named = lstatSync(this.path, { throwIfNoEntry: false });
    const { ino, dev } = fstatSync(this.fd);
    if (named?.ino === ino && named.dev === dev) return;
    this.close();
    this.open();
  }

  close(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
  }

  private open(): number {
    if (this.fd !== undefined) return this.fd;
    const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
    this.fd = openSync(this.path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o644);
    this.size = fstatSync(this.fd).size;
    return this.fd;
  }

  private rotate(): void {
    // A line that is half in the old file belongs there whole.
    if (this.rest.length > 0 && this.fd !== undefined && !endsLine(this.fd)) return;
    this.close();
    for (let age = OLDER_FILES; age >= 1; age -= 1) {
      const from = age === 1 ? this.path : `${this.path}.${age - 1}`;
      if (existsSync(from)) renameSync(from, `${this.path}.${age}`);
    }
    this.size = 0;
  }
}

function endsLine(fd: number): boolean {
  const { size } = fstatSync(fd);
  const last = Buffer.alloc(1);
  return size === 0 || (readSync(fd, last, 0, 1, size - 1) === 1 && last[0] === 0x0a);
}

/** Cuts what stands behind the last line end; returns the size that remains. */
function cutTornLine(fd: number): number {
  const { size } = fstatSync(fd);
  const { text, start } = readTail(fd, size);
  const end = start + text.lastIndexOf(0x0a) + 1;
  if (end < size) ftruncateSync(fd, end);
  return end;
}

function lastLine(fd: number): string | undefined {
  const { text } = readTail(fd, fstatSync(fd).size);
  return text.toString("utf8").trimEnd().split("\n").at(-1) || undefined;
}

function readTail(fd: number, size: number): { text: Buffer; start: number } {
  const start = Math.max(0, size - TAIL_BYTES);
  const text = Buffer.alloc(size - start);
  const read = readSync(fd, text, 0, text.length, start);
  return { text: text.subarray(0, read), start };
}
