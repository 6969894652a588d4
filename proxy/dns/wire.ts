/** The numbers of RFC 1035 and its successors that this resolver knows. */
export const HEADER_BYTES = 12;
/** The largest answer over UDP: what fits into one packet nearly everywhere, so that none is fragmented. */
export const UDP_LIMIT = 1232;
/** What a client without EDNS can take. */
export const PLAIN_UDP_LIMIT = 512;
export const CLASS_IN = 1;

export const RCODE = { noError: 0, formatError: 1, serverFailure: 2, nameError: 3, notImplemented: 4, refused: 5, badVersion: 16 } as const;

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  SSHFP: 44,
  TLSA: 52,
  SVCB: 64,
  HTTPS: 65,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  CAA: 257,
} as const;

const TYPE_NAMES = new Map<number, string>(Object.entries(TYPE).map(([name, number]) => [number, name]));

/** A type as people write it; `TYPE4711` where it has no name here (RFC 3597). */
export function renderType(type: number): string {
  return TYPE_NAMES.get(type) ?? `TYPE${type}`;
}

/** What cannot be read as DNS. Never leaves this folder: a malformed message is answered or dropped. */
export class WireError extends Error {}

const MAX_POINTERS = 64;
const DOT = 0x2e;

/**
 * Reads a name in lower case, with or without compression, from `at`; `end` is the offset behind it in the
 * message. A pointer must lead backwards, so that no chain of them can loop (RFC 1035, 4.1.4). Bytes that
 * are no printable ASCII, dots inside a label and backslashes come out as `\DDD`, so that two different
 * names never have one text.
 */
export function readName(message: Buffer, at: number): { name: string; end: number } {
  const labels: string[] = [];
  let end = -1;
  let offset = at;
  let bytes = 1;
  let lowest = at;
  for (let pointers = 0; ; ) {
    const length = byteAt(message, offset);
    if (length === 0) return { name: labels.join("."), end: end < 0 ? offset + 1 : end };
    if (length < 64) {
      bytes += length + 1;
      if (bytes > 255) throw new WireError("a name of more than 255 bytes");
      if (offset + 1 + length > message.length) throw new WireError("a label beyond the end of the message");
      labels.push(readLabel(message, offset + 1, length));
      offset += 1 + length;
      continue;
    }
    if (length < 0xc0) throw new WireError("a label type that does not exist");
    const target = ((length & 0x3f) << 8) | byteAt(message, offset + 1);
    pointers += 1;
    if (target >= lowest || target < HEADER_BYTES || pointers > MAX_POINTERS) throw new WireError("a pointer that does not lead backwards");
    if (end < 0) end = offset + 2;
    lowest = target;
    offset = target;
  }
}

/** Writes a name without compression; the text is one that `readName` gave or a canonical host name. */
export function encodeName(name: string): Buffer {
  if (name === "") return Buffer.from([0]);
  const parts: number[] = [];
  for (const label of name.split(".")) {
    const bytes = encodeLabel(label);
    if (bytes.length === 0 || bytes.length > 63) throw new WireError(`${name} has a label of ${bytes.length} bytes`);
    parts.push(bytes.length, ...bytes);
  }
  parts.push(0);
  if (parts.length > 255) throw new WireError("a name of more than 255 bytes");
  return Buffer.from(parts);
}

function readLabel(message: Buffer, start: number, length: number): string {
  let text = "";
  for (let at = start; at < start + length; at += 1) {
    const code = byteAt(message, at);
    if (code >= 0x41 && code <= 0x5a) text += String.fromCharCode(code + 32);
    else if (code <= 0x20 || code >= 0x7f || code === DOT || code === 0x5c) text += `\\${String(code).padStart(3, "0")}`;
    else text += String.fromCharCode(code);
  }
  return text;
}

function encodeLabel(label: string): number[] {
  const bytes: number[] = [];
  for (let at = 0; at < label.length; at += 1) {
    if (label[at] === "\\") {
      bytes.push(Number(label.slice(at + 1, at + 4)));
      at += 3;
    } else {
      bytes.push(label.charCodeAt(at));
    }
  }
  return bytes;
}

function byteAt(message: Buffer, offset: number): number {
  const byte = message[offset];
  if (byte === undefined) throw new WireError("a message that ends too early");
  return byte;
}
