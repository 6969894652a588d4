import { type HelloRead, readClientHello } from "./client-hello.ts";

/** The random of a ServerHello that asks for another hello (RFC 8446 section 4.1.3). */
const RETRY = Buffer.from("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c", "hex");
/** Up to the end of the random: record head, message head, version. */
const RANDOM_AT = 5 + 4 + 2;
/** So many bytes of a server's answer tell whether it asks for another hello. */
export const ANSWER_BYTES: number = RANDOM_AT + RETRY.length;
const [CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA] = [20, 21, 22, 23] as const;
const SERVER_HELLO = 2;
const RECORD_HEAD = 5;

/** Tells of the first bytes of an answer whether it asks for another hello; undefined while they do not tell. */
export function isRetryRequest(answer: Buffer): boolean | undefined {
  if (answer.length > 0 && answer[0] !== HANDSHAKE) return false;
  if (answer.length > RECORD_HEAD && answer[RECORD_HEAD] !== SERVER_HELLO) return false;
  return answer.length < ANSWER_BYTES ? undefined : answer.subarray(RANDOM_AT, ANSWER_BYTES).equals(RETRY);
}

/**
 * Finds the second hello in what a client sends behind its first one. In front of it there may be a change of
 * ciphers, which means nothing, and early data, which the server drops (RFC 8446 sections 4.2.10 and 5).
 */
export function readSecondHello(bytes: Buffer): HelloRead {
  for (let at = 0; ; ) {
    if (bytes.length < at + RECORD_HEAD) return { kind: "need-more", bytes: at + RECORD_HEAD };
    const type = bytes[at];
    if (type === HANDSHAKE) return shift(readClientHello(bytes.subarray(at)), at);
    if (type !== CHANGE_CIPHER_SPEC && type !== ALERT && type !== APPLICATION_DATA) return { kind: "malformed", what: "no second hello where one is due" };
    at += RECORD_HEAD + bytes.readUInt16BE(at + 3);
  }
}

function shift(read: HelloRead, by: number): HelloRead {
  if (read.kind === "hello") return { ...read, end: read.end + by };
  return read.kind === "need-more" ? { ...read, bytes: read.bytes + by } : read;
}
