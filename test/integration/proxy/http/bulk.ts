/** As large as uploads have to survive. */
export const BULK = 64 * 1024 * 1024;

/** Bytes of which no two stretches are the same, so that none can take another's place. */
export function makeBulk(length: number): Buffer {
  const bulk = Buffer.alloc(length);
  for (let at = 0; at < length; at += 4) bulk.writeUInt32LE(Math.imul(at, 0x9e3779b1) >>> 0, at);
  return bulk;
}
