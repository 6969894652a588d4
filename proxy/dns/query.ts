import { CLASS_IN, HEADER_BYTES, PLAIN_UDP_LIMIT, RCODE, TYPE, UDP_LIMIT } from "./wire.ts";

/** What a client may ask: one name, one type, class IN, perhaps EDNS. */
export type Query = {
  /** The bytes as they came; they belong to this query alone. */
  message: Buffer;
  /** Where the question ends: behind type and class. */
  questionEnd: number;
  /** The question in lower case, byte by byte in Latin-1: one text for each question that means the same. */
  key: string;
  type: number;
  /** Whether the client speaks EDNS, and how many bytes it takes by UDP, already bounded. */
  edns: boolean;
  udpLimit: number;
};

/** What is said to a message that is no question: a code, with the question repeated where it was readable, or nothing at all. */
export type Refusal = { rcode: number; questionEnd: number | undefined; edns: boolean };
export type ReadQuery = { kind: "query"; query: Query } | { kind: "refuse"; refusal: Refusal; what: string } | { kind: "silence" };

// One for all: it is filled and read before anything else can run.
const scratch = Buffer.alloc(260);
const SILENCE: ReadQuery = { kind: "silence" };

/**
 * Reads a message that a client sent. Answers and messages too short for a header get silence: an answer to
 * them could travel in circles. The rest of what is no plain question is refused by a code, and nothing of
 * it is repeated but its id.
 */
export function readQuery(message: Buffer): ReadQuery {
  if (message.length < HEADER_BYTES) return SILENCE;
  const flags = message.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return SILENCE;
  if ((flags & 0x7800) !== 0) return refuse(RCODE.notImplemented, "another operation than a question");
  // QDCOUNT 1, ANCOUNT and NSCOUNT 0, not truncated.
  if ((flags & 0x0200) !== 0 || message.readUInt32BE(4) !== 0x0001_0000 || message.readUInt16BE(8) !== 0) {
    return refuse(RCODE.formatError, "not exactly one question");
  }
  const nameEnd = lowerName(message);
  if (nameEnd === 0 || nameEnd + 4 > message.length) return refuse(RCODE.formatError, "a malformed name");
  const questionEnd = nameEnd + 4;
  const type = message.readUInt16BE(nameEnd);
  scratch[nameEnd - HEADER_BYTES] = type >> 8;
  scratch[nameEnd - HEADER_BYTES + 1] = type & 0xff;
  const key = scratch.toString("latin1", 0, nameEnd - HEADER_BYTES + 2);
  const query: Query = { message, questionEnd, key, type, edns: false, udpLimit: PLAIN_UDP_LIMIT };
  const extras = message.readUInt16BE(10);
  const trouble = extras === 0 ? (message.length === questionEnd ? undefined : RCODE.formatError) : readEdns(query, extras);
  if (trouble === RCODE.badVersion) return { kind: "refuse", refusal: { rcode: trouble, questionEnd, edns: true }, what: "an unknown version of EDNS" };
  if (trouble !== undefined) return refuse(trouble, "bytes behind the question that are no EDNS");
  if (message.readUInt16BE(nameEnd + 2) !== CLASS_IN) {
    return { kind: "refuse", refusal: { rcode: RCODE.refused, questionEnd, edns: query.edns }, what: "another class than IN" };
  }
  return { kind: "query", query };
}

/** Copies the name of the question into `scratch` in lower case; returns where it ends, or 0 where it is malformed. Pointers have no place in a question. */
function lowerName(message: Buffer): number {
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return 0;
    scratch[at - HEADER_BYTES] = length;
    at += 1;
    if (length === 0) return at;
    const end = at + length;
    // 255 bytes with the root's, which is still to come.
    if (end >= message.length || end - HEADER_BYTES >= 255) return 0;
    for (; at < end; at += 1) {
      const code = message[at] ?? 0;
      scratch[at - HEADER_BYTES] = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    }
  }
}

/** Reads the one additional record that a question may have (RFC 6891): owner root, type OPT. Returns the code of the trouble with it. */
function readEdns(query: Query, extras: number): number | undefined {
  const { message, questionEnd: at } = query;
  if (extras !== 1 || at + 11 > message.length || message[at] !== 0 || message.readUInt16BE(at + 1) !== TYPE.OPT) return RCODE.formatError;
  if (at + 11 + message.readUInt16BE(at + 9) !== message.length) return RCODE.formatError;
  query.edns = true;
  query.udpLimit = Math.max(PLAIN_UDP_LIMIT, Math.min(UDP_LIMIT, message.readUInt16BE(at + 3)));
  return message[at + 6] === 0 ? undefined : RCODE.badVersion;
}

function refuse(rcode: number, what: string): ReadQuery {
  return { kind: "refuse", refusal: { rcode, questionEnd: undefined, edns: false }, what };
}
