import { ChunkedBody } from "./chunked-body.ts";

/** Follows one body after the other to its end. */
export class BodyFraming {
  /** The body is whole. */
  done = true;
  /** It ends with the connection only. */
  untilClose = false;
  /** Bytes of it so far, without the framing of chunks. */
  bytes = 0;
  private left = 0;
  private chunks: ChunkedBody | undefined;

  /** Begins with a body of this many bytes; -1 is one that ends with the connection. */
  begin(length: number, chunked: boolean): void {
    this.chunks = chunked ? new ChunkedBody() : undefined;
    this.untilClose = !chunked && length < 0;
    this.left = length;
    this.done = !chunked && length === 0;
    this.bytes = 0;
  }

  /** Returns the place behind the last byte that belongs to the body; -1 if it is malformed. */
  take(bytes: Uint8Array, from: number, to: number): number {
    if (this.untilClose) {
      this.bytes += to - from;
      return to;
    }
    if (this.chunks !== undefined) {
      const at = this.chunks.take(bytes, from, to);
      this.done = this.chunks.done;
      this.bytes = this.chunks.bytes;
      return at;
    }
    const length = Math.min(this.left, to - from);
    this.left -= length;
    this.bytes += length;
    this.done = this.left === 0;
    return from + length;
  }
}
