import { BRACKET, BRACKET_END, COLON, HOST, KINDS, NINE, ZERO } from "./field-bytes.ts";

const HEXADECIMAL_OR_SIGN = /[0-9A-Fa-f:.]/;
const LITERAL: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => (HEXADECIMAL_OR_SIGN.test(String.fromCharCode(byte)) ? 1 : 0));
const MAX_PORT = 65_535;

/** `host` or `host:port` (RFC 3986 section 3.2, without user and password), as places that count from the head's first byte. */
export class Authority {
  start = 0;
  hostEnd = 0;
  end = 0;
  /** 0 where none is named. */
  port = 0;

  /** Reads the stretch from `start` to `end`; false if it is malformed. Percent signs, zones, empty ports and leading zeros are: programs disagree about them. */
  read(bytes: Uint8Array, from: number, start: number, end: number): boolean {
    let at = start;
    if (bytes[at] === BRACKET) {
      at += 1;
      while (at < end && LITERAL[bytes[at] ?? 0] === 1) at += 1;
      if (at >= end || bytes[at] !== BRACKET_END || at === start + 1) return false;
      at += 1;
    } else {
      while (at < end && ((KINDS[bytes[at] ?? 0] ?? 0) & HOST) !== 0) at += 1;
      if (at === start) return false;
    }
    this.start = start - from;
    this.hostEnd = at - from;
    this.end = end - from;
    this.port = 0;
    return at === end || (bytes[at] === COLON && this.readPort(bytes, at + 1, end));
  }

  private readPort(bytes: Uint8Array, start: number, end: number): boolean {
    if (start === end || end - start > 5 || bytes[start] === ZERO) return false;
    let port = 0;
    for (let at = start; at < end; at += 1) {
      const digit = bytes[at] ?? 0;
      if (digit < ZERO || digit > NINE) return false;
      port = port * 10 + digit - ZERO;
    }
    this.port = port;
    return port <= MAX_PORT;
  }
}
