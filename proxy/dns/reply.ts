import type { Query, Refusal } from "./query.ts";
import { HEADER_BYTES, RCODE, UDP_LIMIT } from "./wire.ts";

/**
 * An answer that is ready but for what differs from client to client: id, flags, the case of the question,
 * EDNS. `records` is the wire form of everything behind the question; names in it point to the question at
 * offset 12 or are written out, so they fit behind any spelling of it. It is held byte by byte as Latin-1
 * text: thousands of answers are kept, and a small Buffer takes ten times the memory of what is in it.
 */
export type ReplyBody = { rcode: number; answers: number; records: string };

/** Bytes of an OPT record without options: root, OPT, our size, no extended code, version 0. */
const OPT_BYTES = 11;
const EXTENDED_CODE_AT = 5;
const OPT = Buffer.from([0, 0, 41, UDP_LIMIT >> 8, UDP_LIMIT & 0xff, 0, 0, 0, 0, 0, 0]);

/** A bare code as an answer: no records. */
export function bareReply(rcode: number): ReplyBody {
  return { rcode, answers: 0, records: "" };
}

export const SERVER_FAILURE = bareReply(RCODE.serverFailure);

/** Makes the bytes for one client; times to live count down by `ageS` seconds. What does not fit into `limit` becomes an empty answer with TC set: the client comes again over TCP. */
export function renderReply({ message, questionEnd, edns }: Query, { rcode, answers, records }: ReplyBody, limit: number, ageS = 0): Buffer {
  const optBytes = edns ? OPT_BYTES : 0;
  const whole = questionEnd + records.length + optBytes <= limit;
  const end = whole ? questionEnd + records.length : questionEnd;
  const reply = Buffer.allocUnsafe(end + optBytes);
  message.copy(reply, 0, 0, questionEnd);
  writeHeader(reply, { rcode, questions: 1, edns });
  if (!whole) {
    reply[2] = (reply[2] ?? 0) | 0x02;
  } else if (answers > 0) {
    reply[7] = answers & 0xff;
    reply[6] = answers >> 8;
    reply.write(records, questionEnd, "latin1");
    if (ageS > 0) ageRecords(reply, { at: questionEnd, answers }, ageS);
  }
  if (edns) reply.set(OPT, end);
  return reply;
}

/** Counts down the times to live of `answers` records as `encodeChain` writes them, from `at` on. */
export function ageRecords(message: Buffer, { at, answers }: { at: number; answers: number }, seconds: number): void {
  let offset = at;
  for (let index = 0; index < answers; index += 1) {
    const fixed = skipName(message, offset);
    message.writeUInt32BE(Math.max(0, message.readUInt32BE(fixed + 4) - seconds), fixed + 4);
    offset = fixed + 10 + message.readUInt16BE(fixed + 8);
  }
}

function skipName(message: Buffer, at: number): number {
  let offset = at;
  for (;;) {
    const length = message[offset] ?? 0;
    if (length === 0) return offset + 1;
    if (length >= 0xc0) return offset + 2;
    offset += length + 1;
  }
}

/** Makes the answer to a message that is no question we take: its id, the code, and the question only where it was whole. */
export function renderRefusal(message: Buffer, { rcode, questionEnd = HEADER_BYTES, edns }: Refusal): Buffer {
  const reply = Buffer.allocUnsafe(questionEnd + (edns ? OPT_BYTES : 0));
  message.copy(reply, 0, 0, questionEnd);
  writeHeader(reply, { rcode: rcode & 0x0f, questions: questionEnd === HEADER_BYTES ? 0 : 1, edns });
  if (edns) {
    reply.set(OPT, questionEnd);
    reply[questionEnd + EXTENDED_CODE_AT] = rcode >> 4;
  }
  return reply;
}

/** Overwrites everything of the header but id, operation and RD, which stay as the client sent them. */
function writeHeader(reply: Buffer, { rcode, questions, edns }: { rcode: number; questions: number; edns: boolean }): void {
  reply[2] = ((reply[2] ?? 0) & 0x79) | 0x80;
  // RA: this resolver does look further.
  reply[3] = 0x80 | rcode;
  reply[4] = 0;
  reply[5] = questions;
  reply[6] = 0;
  reply[7] = 0;
  reply[8] = 0;
  reply[9] = 0;
  reply[10] = 0;
  reply[11] = edns ? 1 : 0;
}
