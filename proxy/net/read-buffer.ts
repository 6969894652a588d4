/** What all quiet connections are read into: a read is handed on before the next one begins. */
export const SHARED: Buffer = Buffer.allocUnsafeSlow(16 * 1024);

/** Bytes of a bulky connection's own buffer. */
export const LARGE = 256 * 1024;
/** So many large buffers are kept for the next bulky connection. */
const KEPT = 8;

const free: Buffer[] = [];

/** A large buffer, one given back if there is any. */
export function takeLarge(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(LARGE);
}

/** Takes back a large buffer that nothing reads from any more. */
export function releaseLarge(buffer: Buffer): void {
  if (free.length < KEPT) free.push(buffer);
}

/** Views of a buffer's beginning by length: what is read and written is often of the same few. */
class Views {
  readonly buffer: Buffer;
  private readonly views: (Buffer | undefined)[] = [];

  constructor(buffer: Buffer) {
    this.buffer = buffer;
  }

  of(length: number): Buffer {
    const known = this.views[length % VIEWS];
    if (known?.length === length) return known;
    const view = this.buffer.subarray(0, length);
    this.views[length % VIEWS] = view;
    return view;
  }
}

const VIEWS = 256;
const shared = new Views(SHARED);
/** Bytes of the buffer that short copies are written from. */
const SPARE = 4096;
let spare = new Views(Buffer.allocUnsafeSlow(SPARE));

/** What a read left in the shared buffer. */
export function sharedView(length: number): Buffer {
  return shared.of(length);
}

/** A copy of what is in the shared buffer, to be written at once: good until the next, unless it is kept. */
export function copyShared(bytes: Buffer): Buffer {
  if (bytes.length > SPARE) return Buffer.from(bytes);
  const copy = spare.of(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** The last copy waits to be written: the next one needs another place. */
export function keepCopy(copy: Buffer): void {
  if (copy.buffer === spare.buffer.buffer) spare = new Views(Buffer.allocUnsafeSlow(SPARE));
}
