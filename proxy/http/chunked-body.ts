import { COLON, CR, KINDS, LF, SEMICOLON, SPACE, TAB, TOKEN, VALUE } from "./field-bytes.ts";
import { NOT_IN_TRAILERS } from "./field-name.ts";

/** Digits of a chunk's size: exact as a number. */
const MAX_DIGITS = 13;
/** Bytes of all extensions of a body, which nobody uses, and of its trailers. */
const [MAX_EXTENSION_BYTES, MAX_TRAILER_BYTES] = [16 * 1024, 16 * 1024] as const;

/** Hexadecimal digits by byte; 16 is none. */
const DIGITS: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  return /[0-9a-fA-F]/.test(char) ? Number.parseInt(char, 16) : 16;
});

/** Where the next byte belongs. */
const [SIZE, BLANK, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, NAME, FIELD, FIELD_LF, LAST_LF] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] as const;

/**
 * Follows a chunked body (RFC 9112 section 7.1) to its end while it is handed on as it is. Strict, because a
 * reader behind that sees another end would take the rest for another message.
 */
export class ChunkedBody {
  done = false;
  /** Bytes of data so far. */
  bytes = 0;
  private state: number = SIZE;
  private size = 0;
  private digits = 0;
  private extensionBytes = 0;
  private trailerBytes = 0;
  private name = "";

  /** Returns the place behind the last byte that belongs to the body; -1 if it is malformed. */
  take(bytes: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to && !this.done) {
      if (this.state === DATA) {
        const length = Math.min(this.size, to - at);
        this.size -= length;
        this.bytes += length;
        at += length;
        if (this.size === 0) this.state = DATA_CR;
      } else if (this.step(bytes[at] ?? 0)) {
        at += 1;
      } else {
        return -1;
      }
    }
    return at;
  }

  private step(byte: number): boolean {
    switch (this.state) {
      case SIZE:
        return this.takeDigit(byte);
      case BLANK:
        // RFC 9112 section 7.1.1: blanks only ahead of an extension.
        if (byte === SEMICOLON) this.state = EXTENSION;
        else if (byte !== SPACE && byte !== TAB) return false;
        return this.countExtension();
      case EXTENSION:
        if (byte === CR) return this.go(SIZE_LF);
        return ((KINDS[byte] ?? 0) & VALUE) !== 0 && this.countExtension();
      case SIZE_LF:
        return byte === LF && this.go(this.size === 0 ? TRAILER : DATA);
      case DATA_CR:
        return byte === CR && this.go(DATA_LF);
      case DATA_LF:
        this.digits = 0;
        return byte === LF && this.go(SIZE);
      default:
        return this.takeTrailer(byte);
    }
  }

  private takeDigit(byte: number): boolean {
    const digit = DIGITS[byte] ?? 16;
    if (digit < 16) {
      this.digits += 1;
      this.size = this.size * 16 + digit;
      return this.digits <= MAX_DIGITS;
    }
    if (this.digits === 0) return false;
    if (byte === CR) return this.go(SIZE_LF);
    if (byte === SEMICOLON) return this.go(EXTENSION);
    return (byte === SPACE || byte === TAB) && this.go(BLANK);
  }

  private takeTrailer(byte: number): boolean {
    this.trailerBytes += 1;
    if (this.trailerBytes > MAX_TRAILER_BYTES) return false;
    switch (this.state) {
      case TRAILER:
        if (byte === CR) return this.go(LAST_LF);
        this.name = "";
        this.state = NAME;
        return this.takeName(byte);
      case NAME:
        return this.takeName(byte);
      case FIELD:
        if (byte === CR) return this.go(FIELD_LF);
        return ((KINDS[byte] ?? 0) & VALUE) !== 0;
      case FIELD_LF:
        return byte === LF && this.go(TRAILER);
      default:
        this.done = byte === LF;
        return this.done;
    }
  }

  private takeName(byte: number): boolean {
    if (byte === COLON) return this.name !== "" && !NOT_IN_TRAILERS.has(this.name.toLowerCase()) && this.go(FIELD);
    this.name += String.fromCharCode(byte);
    return ((KINDS[byte] ?? 0) & TOKEN) !== 0;
  }

  private countExtension(): boolean {
    this.extensionBytes += 1;
    return this.extensionBytes <= MAX_EXTENSION_BYTES;
  }

  private go(state: number): true {
    this.state = state;
    return true;
  }
}
