import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type AuditEntry, parseEntry } from "./audit-entry.ts";

/** One line of a log, from 1, without its line end; `whole` is false for what stands behind the last line end. */
export type AuditLine = { number: number; text: string; whole: boolean };

const CHUNK_BYTES = 256 * 1024;
/** The logger writes none of this length. */
const MAX_LINE_BYTES = 1024 * 1024;

/**
 * Reads the lines of a log, one after the other and never all at once. A line that is no UTF-8, or longer than
 * 1 MiB, is empty here. No link is followed. Throws what the system says, or an Error for what is no regular file.
 */
export function* readAuditLines(file: string): Generator<AuditLine> {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(fd).isFile()) throw new Error("it is no regular file");
    const cutter = new LineCutter();
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      const bytes = readSync(fd, chunk, 0, CHUNK_BYTES, null);
      if (bytes === 0) break;
      yield* cutter.take(chunk.subarray(0, bytes));
    }
    yield* cutter.end();
  } finally {
    closeSync(fd);
  }
}

/** Reads the entries of a log; lines that are none are left out. */
export function* readAuditEntries(file: string): Generator<AuditEntry> {
  for (const { text, whole } of readAuditLines(file)) {
    const entry = whole ? parseEntry(text) : undefined;
    if (entry !== undefined) yield entry;
  }
}

/** Cuts bytes that come piece by piece into lines. */
export class LineCutter {
  private number = 0;
  private rest: Buffer[] = [];
  private length = 0;

  /** The lines that end in `chunk`, which the caller may use again afterwards. */
  *take(chunk: Buffer): Generator<AuditLine> {
    let begin = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, begin)) {
      this.keep(chunk.subarray(begin, end));
      yield this.finish(true);
      begin = end + 1;
    }
    this.keep(Buffer.from(chunk.subarray(begin)));
  }

  /** What stands behind the last line end, if anything does. */
  *end(): Generator<AuditLine> {
    if (this.length > 0) yield this.finish(false);
  }

  private keep(piece: Buffer): void {
    if (this.length <= MAX_LINE_BYTES) this.rest.push(piece);
    this.length += piece.length;
  }

  private finish(whole: boolean): AuditLine {
    const bytes = Buffer.concat(this.rest);
    // What a decoder would repair was not written by the logger.
    const text = this.length <= MAX_LINE_BYTES && isUtf8(bytes) ? bytes.toString("utf8") : "";
    this.rest = [];
    this.length = 0;
    this.number += 1;
    return { number: this.number, text, whole };
  }
}
