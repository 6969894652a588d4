const FIRST = 1024;
const NOTHING = Buffer.alloc(0);

/** Bytes that came too early or not whole, copied out of the buffer that all connections are read into. */
export class KeptBytes {
  buffer: Buffer = NOTHING;
  start = 0;
  end = 0;

  get length(): number {
    return this.end - this.start;
  }

  /** What is kept, until something is added or dropped. */
  get bytes(): Buffer {
    return this.buffer.subarray(this.start, this.end);
  }

  /** Adds a copy of the stretch. */
  add(bytes: Buffer, from: number, to: number): void {
    const more = to - from;
    if (this.end + more > this.buffer.length) this.grow(more);
    bytes.copy(this.buffer, this.end, from, to);
    this.end += more;
  }

  /** Lets go of the first bytes; the buffer too where none is left, since most connections never need one again. */
  drop(count: number): void {
    this.start += count;
    if (this.start < this.end) return;
    this.buffer = NOTHING;
    this.start = 0;
    this.end = 0;
  }

  /** Hands over what is kept, and keeps nothing more. */
  take(): Buffer {
    if (this.length === 0) return NOTHING;
    const bytes = this.buffer.subarray(this.start, this.end);
    this.drop(this.length);
    return bytes;
  }

  private grow(more: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(FIRST, 2 * (this.length + more)));
    this.buffer.copy(larger, 0, this.start, this.end);
    this.end -= this.start;
    this.start = 0;
    this.buffer = larger;
  }
}
