import { type AnswerChain, followChain, type TtlPlace } from "./answer-chain.ts";
import type { Tally } from "./decision-log.ts";
import type { ReplyBody } from "./reply.ts";
import { readResponse } from "./response.ts";
import { encodeQuestion, type Question } from "./upstream-question.ts";

/** An answer that can be given again without a thought, as long as it is fresh and the policy that judged it serves. */
export type HeldAnswer = {
  body: ReplyBody;
  ttlPlaces: readonly TtlPlace[];
  /** Unix ms. */
  born: number;
  freshUntil: number;
  /** Of the policy that judged it. */
  epoch: number;
  tally: Tally;
  /** Something was left out that another policy may allow: it cannot be judged again, only asked for. */
  partial: boolean;
  /** For how many seconds the times to live in `body` have been counted down. */
  aged: number;
};

/** Counts the times to live in the body down to now. The body is changed in place: all clients are told the same. */
export function ageAnswer(held: HeldAnswer, now: number): ReplyBody {
  const seconds = Math.floor((now - held.born) / 1000);
  if (seconds !== held.aged && held.ttlPlaces.length > 0) {
    held.aged = seconds;
    for (const { at, seconds: whole } of held.ttlPlaces) held.body.records.writeUInt32BE(Math.max(0, whole - seconds), at);
  }
  return held.body;
}

/** Reads a held answer as if it had just come, to judge it anew; the times to live are what is left of them. */
export function rereadAnswer(held: HeldAnswer, question: Question, now: number): AnswerChain {
  const { rcode, answers, records } = ageAnswer(held, now);
  const { message, questionEnd } = encodeQuestion({ ...question });
  const whole = Buffer.concat([message.subarray(0, questionEnd), records]);
  whole.writeUInt16BE(0x8000 | rcode, 2);
  whole.writeUInt16BE(answers, 6);
  const left = Math.max(0, Math.floor((held.freshUntil - now) / 1000));
  return { ...followChain(readResponse(whole, questionEnd), question), ttl: left };
}
