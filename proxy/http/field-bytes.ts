/** Kinds of bytes in the head of a message, as bits of `KINDS`. */
export const [TOKEN, VALUE, VISIBLE, HOST] = [1, 2, 4, 8] as const;

export const [TAB, LF, CR, SPACE, HASH, ASTERISK, SLASH, ZERO, NINE, COLON, SEMICOLON, QUESTION, BRACKET, BRACKET_END] = [0x09, 0x0a, 0x0d, 0x20, 0x23, 0x2a, 0x2f, 0x30, 0x39, 0x3a, 0x3b, 0x3f, 0x5b, 0x5d] as const;

/** The bit that tells a small letter from a capital one. */
const SMALL = 0x20;

/**
 * What each byte may be part of: a token (RFC 9110 section 5.6.2), a field value (5.5: visible bytes, those
 * above ASCII, space and tab), a target (visible ASCII), a host name.
 */
export const KINDS: Uint8Array = makeKinds();

function makeKinds(): Uint8Array {
  const kinds = new Uint8Array(256);
  const mark = (pattern: RegExp, kind: number): void => {
    for (let byte = 0; byte < 256; byte += 1) if (pattern.test(String.fromCharCode(byte))) kinds[byte] = (kinds[byte] ?? 0) | kind;
  };
  mark(/[A-Za-z0-9!#$%&'*+.^_`|~-]/, TOKEN);
  mark(/[\t\u0020-\u007e\u0080-\u00ff]/, VALUE);
  mark(/[\u0021-\u007e]/, VISIBLE);
  mark(/[A-Za-z0-9._-]/, HOST);
  return kinds;
}

/** Whether a word, given in small letters, stands at a place in whatever case. The bytes there are known to be visible: a control byte could pass for a sign. */
export function matches(bytes: Uint8Array, start: number, word: string): boolean {
  for (let at = 0; at < word.length; at += 1) if (((bytes[start + at] ?? 0) | SMALL) !== word.charCodeAt(at)) return false;
  return true;
}

/** Whether two stretches hold the same bytes. */
export function isSame(bytes: Uint8Array, [start, end]: readonly [number, number], [otherStart, otherEnd]: readonly [number, number]): boolean {
  if (end - start !== otherEnd - otherStart) return false;
  for (let at = 0; at < end - start; at += 1) if (bytes[start + at] !== bytes[otherStart + at]) return false;
  return true;
}
