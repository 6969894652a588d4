import { Transform, type TransformCallback } from "node:stream";

const LINE_END = 0x0a;
const NOTHING = Buffer.alloc(0);

/**
 * Gives on whole lines only, and fails at one that is too long. The protocol's own library joins and searches all that it
 * has at every piece, which makes a message of 16 MiB seconds of work: enough for a box to keep the host busy.
 */
export class MessageLines extends Transform {
  readonly #limit: number;
  /** Grows by doubling, so that neither large messages nor many small pieces cost more than their bytes. */
  #held: Buffer = NOTHING;
  #length = 0;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const end = chunk.lastIndexOf(LINE_END) + 1;
    if (end > 0) {
      this.push(Buffer.concat([this.#held.subarray(0, this.#length), chunk.subarray(0, end)]));
      this.#held = NOTHING;
      this.#length = 0;
    }
    this.#hold(chunk.subarray(end));
    if (this.#length <= this.#limit) return done();
    this.#held = NOTHING;
    done(new Error(`a message has more than the maximum of ${this.#limit} bytes`));
  }

  #hold(piece: Buffer): void {
    const needed = this.#length + piece.length;
    if (needed > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#held.length));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    piece.copy(this.#held, this.#length);
    this.#length = needed;
  }
}
