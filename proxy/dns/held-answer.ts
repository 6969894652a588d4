import { type AnswerChain, followChain } from "./answer-chain.ts";
import type { Tally } from "../log/decision-log.ts";
import { ageRecords, type ReplyBody } from "./reply.ts";
import { readResponse } from "./response.ts";
import { encodeQuestion, type Question } from "./upstream-question.ts";

/** An answer that can be given again without a thought, as long as it is fresh and the policy that judged it serves. */
export type HeldAnswer = ReplyBody & {
  /** Unix ms. */
  born: number;
  freshUntil: number;
  /** Of the policy that judged it. */
  epoch: number;
  tally: Tally;
  /** Something was left out that another policy may allow: it cannot be judged again, only asked for. */
  partial: boolean;
};

/** The whole seconds since an answer came. */
export function ageOf({ born }: HeldAnswer, now: number): number {
  return Math.floor((now - born) / 1000);
}

/** Reads a held answer as if it had just come, to judge it anew; the times to live are what is left of them. */
export function rereadAnswer(held: HeldAnswer, question: Question, now: number): AnswerChain {
  const { rcode, answers, records } = held;
  const { message, questionEnd } = encodeQuestion({ ...question });
  const whole = Buffer.concat([message.subarray(0, questionEnd), Buffer.from(records, "latin1")]);
  whole.writeUInt16BE(0x8000 | rcode, 2);
  whole.writeUInt16BE(answers, 6);
  ageRecords(whole, { at: questionEnd, answers }, ageOf(held, now));
  const left = Math.max(0, Math.floor((held.freshUntil - now) / 1000));
  return { ...followChain(readResponse(whole, questionEnd), question), ttl: left };
}
