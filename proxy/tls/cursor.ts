/** Reads numbers and vectors of TLS one after the other; what goes beyond the end is empty, and `broken` says so. */
export class Cursor {
  broken = false;
  private readonly bytes: Buffer;
  private at: number;
  private readonly end: number;

  constructor(bytes: Buffer, at: number, end: number) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get left(): number {
    return this.end - this.at;
  }

  skip(count: number): void {
    if (count <= this.left) this.at += count;
    else this.fail();
  }

  number(size: 1 | 2): number {
    const { at } = this;
    this.skip(size);
    if (this.broken) return 0;
    return size === 1 ? this.bytes.readUInt8(at) : this.bytes.readUInt16BE(at);
  }

  /** A vector with its length in front, of one or two bytes. */
  vector(size: 1 | 2): Cursor {
    const length = this.number(size);
    const { at } = this;
    this.skip(length);
    return this.broken ? new Cursor(this.bytes, this.end, this.end) : new Cursor(this.bytes, at, at + length);
  }

  /** What is left, byte by byte. */
  text(): string {
    return this.bytes.toString("latin1", this.at, this.end);
  }

  private fail(): void {
    this.broken = true;
    this.at = this.end;
  }
}
