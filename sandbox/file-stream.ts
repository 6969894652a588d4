import { createHash } from "node:crypto";
import { close, closeSync, constants, openSync, read, readSync } from "node:fs";
import { promisify } from "node:util";
import { asFileError } from "./errors.ts";

/** Bytes of a piece: large enough that the calls cost little, small enough that two of them are nothing. */
export const PIECE_BYTES = 1024 * 1024;

const closeFile = promisify(close);

/** Opens what a handle names, for reading. It was seen to be a regular file; O_NONBLOCK is for those who hold a lease on it. */
function openForReading(itself: string): number {
  return openSync(itself, constants.O_RDONLY | constants.O_NONBLOCK);
}

/** Reads at most `size` bytes at once; for files that are small enough not to hold up others. */
export function readWhole(itself: string, size: number): Uint8Array {
  const fd = openForReading(itself);
  try {
    const bytes = Buffer.allocUnsafe(size);
    let filled = 0;
    for (let got = -1; got !== 0 && filled < size; filled += got) got = readSync(fd, bytes, filled, size - filled, filled);
    return filled === size ? bytes : bytes.subarray(0, filled);
  } finally {
    closeSync(fd);
  }
}

/**
 * A large file as a stream of pieces, read once. It holds a handle of its own until the end, an early `return` of its
 * iterator, or `close`. While a piece is digested and used, the next one is being read.
 */
export class FileStream implements AsyncIterable<Uint8Array> {
  readonly #fd: number;
  readonly #size: number;
  readonly #path: string;
  #digest: string | undefined;
  #isTaken = false;

  constructor({ itself, size, path }: { itself: string; size: number; path: string }) {
    this.#fd = openForReading(itself);
    this.#size = size;
    this.#path = path;
  }

  /** SHA-256 of all pieces in hexadecimal; undefined until the last one was taken. */
  get digest(): string | undefined {
    return this.#digest;
  }

  /** Releases a stream that nobody will read. */
  close(): void {
    if (this.#isTaken) return;
    this.#isTaken = true;
    closeSync(this.#fd);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#isTaken) throw new Error(`${this.#path} was read or closed before`);
    this.#isTaken = true;
    const hash = createHash("sha256");
    let next = this.#readAt(0);
    try {
      for (let at = 0; ; ) {
        const piece = await next;
        if (piece.length === 0) break;
        at += piece.length;
        next = this.#readAt(at);
        hash.update(piece);
        yield piece;
      }
      this.#digest = hash.digest("hex");
    } catch (error) {
      throw asFileError(error, this.#path);
    } finally {
      // A read that is under way would otherwise go to whatever gets the number next.
      await next.catch(() => undefined);
      await closeFile(this.#fd);
    }
  }

  /** What was judged is what is read: a file that grows meanwhile is read to its old end. */
  #readAt(at: number): Promise<Uint8Array> {
    const length = Math.min(PIECE_BYTES, this.#size - at);
    if (length <= 0) return Promise.resolve(new Uint8Array());
    return new Promise((resolve, reject) => {
      read(this.#fd, Buffer.allocUnsafeSlow(length), 0, length, at, (error, got, bytes) => (error === null ? resolve(bytes.subarray(0, got)) : reject(error)));
    });
  }
}
