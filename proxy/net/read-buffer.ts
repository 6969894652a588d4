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

/** Views of the shared buffer's beginning, by length: reads are often of the same few. */
const views: (Buffer | undefined)[] = [];
const VIEWS = 256;

/** What a read left in the shared buffer. */
export function sharedView(length: number): Buffer {
  const known = views[length % VIEWS];
  if (known?.length === length) return known;
  const view = SHARED.subarray(0, length);
  views[length % VIEWS] = view;
  return view;
}
