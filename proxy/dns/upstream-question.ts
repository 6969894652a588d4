import { randomBytes, randomInt } from "node:crypto";
import { encodeName, HEADER_BYTES, UDP_LIMIT } from "./wire.ts";

/** A question as this resolver asks it: the canonical name and a type. */
export type Question = { name: string; type: number };

/** A question on its way: the message, and where its question section ends. */
export type Outgoing = { message: Buffer; questionEnd: number };

const OPT = Buffer.from([0, 0, 41, UDP_LIMIT >> 8, UDP_LIMIT & 0xff, 0, 0, 0, 0, 0, 0]);

/**
 * Makes the message for an upstream resolver. It holds nothing of what the client sent but the name: a
 * random id, recursion desired, each letter in a random case (the answer must repeat them, which a forger
 * cannot know), EDNS with our size and no options.
 */
export function encodeQuestion({ name, type }: Question): Outgoing {
  const encoded = encodeName(name);
  const noise = randomBytes(encoded.length);
  for (let at = 0; at < encoded.length; at += 1) {
    const code = encoded[at] ?? 0;
    // A length is below 64 and so never taken for a letter, except in names with labels that do not exist.
    if (code >= 0x61 && code <= 0x7a && ((noise[at] ?? 0) & 1) === 1) encoded[at] = code & 0xdf;
  }
  const fixed = Buffer.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
  fixed.writeUInt16BE(randomInt(0x1_0000), 0);
  const tail = Buffer.from([type >> 8, type & 0xff, 0, 1]);
  return { message: Buffer.concat([fixed, encoded, tail, OPT]), questionEnd: HEADER_BYTES + encoded.length + 4 };
}

/** How an answer relates to a question: it is the answer, it is but for the case of its letters, or it is something else. */
export function matchAnswer({ message, questionEnd }: Outgoing, answer: Buffer): "answer" | "other-case" | "stranger" {
  if (answer.length < questionEnd) return "stranger";
  const flags = answer.readUInt16BE(2);
  // QR set, operation 0, the id, one question.
  if ((flags & 0xf800) !== 0x8000 || answer.readUInt16BE(0) !== message.readUInt16BE(0) || answer.readUInt16BE(4) !== 1) return "stranger";
  const asked = message.subarray(HEADER_BYTES, questionEnd);
  const said = answer.subarray(HEADER_BYTES, questionEnd);
  if (asked.equals(said)) return "answer";
  return asked.toString("latin1").toLowerCase() === said.toString("latin1").toLowerCase() ? "other-case" : "stranger";
}
