import { COLON, CR, matches } from "./field-bytes.ts";

/** Fields that mean something to a proxy; all others are handed on unread. `hop` are those that concern one connection only. */
export type FieldKind = "other" | "host" | "connection" | "content-length" | "transfer-encoding" | "upgrade" | "expect" | "hop" | "unix-socket";

const [LETTER_P, SMALL] = [0x70, 0x20] as const;

/** Tells what a field name, in whatever case, means. The bytes are those of a token. */
export function recogniseField(bytes: Uint8Array, start: number, end: number): FieldKind {
  const length = end - start;
  if (((bytes[start] ?? 0) | SMALL) === LETTER_P) return length > 6 && matches(bytes, start, "proxy-") ? "hop" : "other";
  switch (length) {
    case 2:
      return matches(bytes, start, "te") ? "hop" : "other";
    case 4:
      return matches(bytes, start, "host") ? "host" : "other";
    case 6:
      return matches(bytes, start, "expect") ? "expect" : "other";
    case 7:
      return matches(bytes, start, "upgrade") ? "upgrade" : "other";
    case 10:
      return matches(bytes, start, "connection") ? "connection" : matches(bytes, start, "keep-alive") ? "hop" : "other";
    case 13:
      return matches(bytes, start, "x-unix-socket") ? "unix-socket" : "other";
    case 14:
      return matches(bytes, start, "content-length") ? "content-length" : "other";
    case 17:
      return matches(bytes, start, "transfer-encoding") ? "transfer-encoding" : "other";
    default:
      return "other";
  }
}

/** Fields that say how a message is read and where it goes: one that Connection names would be dropped on the way, and the next reader would see another message. */
export const FRAMING: ReadonlySet<string> = new Set(["host", "content-length", "transfer-encoding", "connection"]);

/** Fields that no trailer may hold (RFC 9110 section 6.5.1): a reader that joins them to the head would see another message. */
export const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([...FRAMING, "upgrade", "te", "trailer", "expect", "authorization", "cookie", "set-cookie", "content-type", "content-encoding", "content-range"]);

/** Reads a list of names (RFC 9110 section 5.6.1) in small letters; undefined if it is none. */
export function readList(text: string): readonly string[] | undefined {
  const words = text.split(",").map((word) => word.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "")).filter((word) => word !== "");
  return words.every((word) => /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(word)) ? words : undefined;
}

/** Adds the lines of named fields to those that are cut. The places are those of a parsed head. */
export function cutNamed({ bytes, from, start, end, names, cuts }: { bytes: Uint8Array; from: number; start: number; end: number; names: ReadonlySet<string>; cuts: readonly number[] }): number[] {
  const all: number[] = [];
  for (let at = start, done = 0; at < end; ) {
    const line = at;
    while (bytes[from + at] !== COLON) at += 1;
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + from + line, at - line).toString("latin1").toLowerCase();
    while (bytes[from + at] !== CR) at += 1;
    at += 2;
    const isCut = cuts[done] === line;
    if (isCut) done += 2;
    if (isCut || names.has(name)) all.push(line, at);
  }
  return all;
}
