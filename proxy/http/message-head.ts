import { LIMITS } from "../web-context.ts";
import { COLON, CR, KINDS, LF, matches, NINE, SPACE, TAB, TOKEN, VALUE, ZERO } from "./field-bytes.ts";
import { cutNamed, type FieldKind, FRAMING, readList, recogniseField } from "./field-name.ts";

/** What `parse` answers where it does not give the length of the head. */
export const [NEED_MORE, MALFORMED] = [0, -1] as const;

/** Digits of a length: more than any body has, and exact as a number. */
const MAX_DIGITS = 15;

/** A field, as places in the bytes that are being parsed; `from` is the head's first. */
export type Field = { bytes: Uint8Array; from: number; start: number; valueStart: number; valueEnd: number; end: number };

/**
 * The head of a message, parsed in place and strictly: whatever two readers could take differently is
 * malformed. Every place that it keeps counts from the head's first byte, since the bytes may move while it
 * is incomplete. One object serves all messages of a connection, one after the other.
 */
export abstract class MessageHead {
  /** One sentence, once it is malformed. */
  complaint = "";
  tooLarge = false;
  /** HTTP/1.0 or 1.1. */
  minor = 1;
  /** -1 where there is no such field. */
  contentLength = -1;
  chunked = false;
  /** Connection says that it shall end afterwards. */
  wantsClose = false;
  /** Connection and Upgrade ask for WebSocket. Other protocols are not handed on: nobody could see the names in them. */
  isUpgrade = false;
  /** Lines that go no further, as pairs of start and end, in order. */
  cuts: number[] = [];
  private upgrade: string | undefined;
  private asksUpgrade = false;
  private nominated: Set<string> | undefined;
  private fieldsAt = 0;
  private at = 0;

  /** Gets ready for the next message. */
  reset(): void {
    this.contentLength = -1;
    this.chunked = false;
    this.wantsClose = false;
    this.isUpgrade = false;
    if (this.cuts.length > 0) this.cuts = [];
    this.upgrade = undefined;
    this.asksUpgrade = false;
    this.nominated = undefined;
    this.at = 0;
  }

  /** Parses on: the bytes from the head's first to the last that came. Returns the length of the head once it is whole. */
  parse(bytes: Uint8Array, from: number, to: number): number {
    const limit = Math.min(to, from + LIMITS.headBytes);
    if (this.at === 0) {
      const start = this.readStart(bytes, from, limit);
      if (start <= 0) return this.stop(start, to - from);
      this.fieldsAt = start - from;
      this.at = this.fieldsAt;
    }
    let at = from + this.at;
    while (at < limit && bytes[at] !== CR) {
      const next = this.readField(bytes, from, at, limit);
      if (next <= 0) return this.stop(next, to - from);
      at = next;
      this.at = at - from;
    }
    if (at + 1 >= limit) return this.stop(NEED_MORE, to - from);
    if (bytes[at + 1] !== LF) return this.fail("it holds a CR that ends no line");
    return this.finish(bytes, from) ? at + 2 - from : MALFORMED;
  }

  /** Reads the first line; returns the place behind it. */
  protected abstract readStart(bytes: Uint8Array, from: number, limit: number): number;

  /** Takes a field that only one kind of message has. */
  protected abstract takeOwn(kind: FieldKind, field: Field): boolean;

  /** Judges the whole. */
  protected abstract check(): boolean;

  protected fail(complaint: string): typeof MALFORMED {
    this.complaint = complaint;
    return MALFORMED;
  }

  protected refuse(complaint: string): false {
    this.complaint = complaint;
    return false;
  }

  protected cut({ from, start, end }: Field): true {
    this.cuts.push(start - from, end - from);
    return true;
  }

  private stop(answer: number, length: number): number {
    if (answer === MALFORMED || length < LIMITS.headBytes) return answer;
    this.tooLarge = true;
    return this.fail(`it is larger than ${LIMITS.headBytes} bytes`);
  }

  private readField(bytes: Uint8Array, from: number, start: number, limit: number): number {
    let at = start;
    while (at < limit && ((KINDS[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at += 1;
    if (at >= limit) return NEED_MORE;
    if (bytes[at] !== COLON || at === start) return this.fail(explainName(bytes[at], at === start));
    const nameEnd = at;
    at += 1;
    while (at < limit && (bytes[at] === SPACE || bytes[at] === TAB)) at += 1;
    const valueStart = at;
    while (at < limit && ((KINDS[bytes[at] ?? 0] ?? 0) & VALUE) !== 0) at += 1;
    if (at < limit && bytes[at] !== CR) return this.fail(explainByte(bytes[at]));
    if (at + 1 >= limit) return NEED_MORE;
    if (bytes[at + 1] !== LF) return this.fail("it holds a CR that ends no line");
    const kind = recogniseField(bytes, start, nameEnd);
    if (kind === "other") return at + 2;
    let valueEnd = at;
    while (valueEnd > valueStart && (bytes[valueEnd - 1] === SPACE || bytes[valueEnd - 1] === TAB)) valueEnd -= 1;
    return this.take(kind, { bytes, from, start, valueStart, valueEnd, end: at + 2 }) ? at + 2 : MALFORMED;
  }

  private take(kind: FieldKind, field: Field): boolean {
    switch (kind) {
      case "content-length":
        return this.takeLength(field);
      case "transfer-encoding":
        return this.takeCoding(field);
      case "connection":
        return this.cut(field) && this.takeConnection(field);
      case "upgrade":
        this.upgrade = this.upgrade === undefined ? readText(field) : "";
        return this.cut(field);
      case "hop":
        return this.cut(field);
      case "host":
      case "expect":
      case "unix-socket":
      case "other":
        return this.takeOwn(kind, field);
    }
  }

  /** RFC 9112 section 6.3: a length that two readers could take differently is where requests are smuggled. */
  private takeLength({ bytes, valueStart, valueEnd }: Field): boolean {
    if (this.contentLength >= 0) return this.refuse("it has several Content-Length fields");
    if (valueEnd === valueStart || valueEnd - valueStart > MAX_DIGITS) return this.refuse("its Content-Length is no length");
    let length = 0;
    for (let at = valueStart; at < valueEnd; at += 1) {
      const digit = bytes[at] ?? 0;
      if (digit < ZERO || digit > NINE) return this.refuse("its Content-Length is no length");
      length = length * 10 + digit - ZERO;
    }
    this.contentLength = length;
    return true;
  }

  /** RFC 9112 section 6.1. No other coding than `chunked` is passed on, since its end could not be seen. */
  private takeCoding(field: Field): boolean {
    if (this.chunked) return this.refuse("it has several Transfer-Encoding fields");
    if (!isWord(field, "chunked")) return this.refuse("its Transfer-Encoding is not chunked");
    this.chunked = true;
    return true;
  }

  private takeConnection(field: Field): boolean {
    // Nearly all say one of these.
    if (isWord(field, "keep-alive")) return true;
    if (isWord(field, "close")) {
      this.wantsClose = true;
      return true;
    }
    const words = readList(readText(field));
    if (words === undefined) return this.refuse("its Connection field is no list of names");
    for (const word of words) {
      if (FRAMING.has(word)) return this.refuse(`its Connection field names ${word}`);
      if (word === "close") this.wantsClose = true;
      else if (word === "upgrade") this.asksUpgrade = true;
      else if (word !== "keep-alive") (this.nominated ??= new Set()).add(word);
    }
    return true;
  }

  private finish(bytes: Uint8Array, from: number): boolean {
    if (this.chunked && this.contentLength >= 0) return this.refuse("it has both Content-Length and Transfer-Encoding");
    if (this.chunked && this.minor === 0) return this.refuse("HTTP/1.0 knows no Transfer-Encoding");
    this.isUpgrade = this.asksUpgrade && this.upgrade === "websocket" && this.minor === 1;
    if (this.nominated !== undefined) this.cuts = cutNamed({ bytes, from, start: this.fieldsAt, end: this.at, names: this.nominated, cuts: this.cuts });
    return this.check();
  }
}

function isWord({ bytes, valueStart, valueEnd }: Field, word: string): boolean {
  return valueEnd - valueStart === word.length && matches(bytes, valueStart, word);
}

/** The value of a field, in small letters. */
function readText({ bytes, valueStart, valueEnd }: Field): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + valueStart, valueEnd - valueStart).toString("latin1").toLowerCase();
}

function explainName(byte: number | undefined, isFirst: boolean): string {
  if (isFirst && (byte === SPACE || byte === TAB)) return "it has a folded header line";
  if (isFirst && byte === COLON) return "it has a header line without a name";
  if (byte === SPACE || byte === TAB) return "it has a blank before a colon";
  return explainByte(byte);
}

/** Says what is wrong with a byte that cannot stand where it does. */
export function explainByte(byte: number | undefined): string {
  if (byte === LF) return "it holds a LF that ends no line";
  if (byte === CR) return "it holds a CR that ends no line";
  if (byte === 0) return "it holds a NUL byte";
  return `it holds the byte 0x${(byte ?? 0).toString(16).padStart(2, "0")} where that cannot be`;
}
