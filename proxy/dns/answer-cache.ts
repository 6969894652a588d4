import type { HeldAnswer } from "./held-answer.ts";

const MAX_ANSWERS = 32_768;
const MAX_REFUSALS = 8192;
/** For how long an answer that is not fresh any more may still be given while no upstream answers (RFC 8767). */
const STALE_MS = 3_600_000;

/**
 * Answers by question. Those that came from outside and those that the policy alone gives are bounded each
 * on their own, so that no flood of refused names pushes out what was asked for at a price.
 */
export class AnswerCache {
  private readonly answers = new Map<string, HeldAnswer>();
  private readonly refusals = new Map<string, HeldAnswer>();

  /** The answer that can be given as it is now, or undefined. */
  find(key: string, epoch: number, now: number): HeldAnswer | undefined {
    const held = this.answers.get(key) ?? this.refusals.get(key);
    return held !== undefined && held.epoch === epoch && now < held.freshUntil ? held : undefined;
  }

  /** The answer from outside, also when it is not fresh or was judged by an older policy. */
  findOld(key: string, now: number): HeldAnswer | undefined {
    const held = this.answers.get(key);
    return held !== undefined && now < held.freshUntil + STALE_MS ? held : undefined;
  }

  /** Keeps an answer from outside. */
  hold(key: string, held: HeldAnswer): void {
    this.refusals.delete(key);
    keep(this.answers, key, held, MAX_ANSWERS);
  }

  /** Keeps an answer that only the policy gives. */
  holdRefusal(key: string, held: HeldAnswer): void {
    this.answers.delete(key);
    keep(this.refusals, key, held, MAX_REFUSALS);
  }

  drop(key: string): void {
    this.answers.delete(key);
  }

  /** Forgets what the policy before gave; answers from outside stay and are judged again when they are asked for. */
  forgetRefusals(): void {
    this.refusals.clear();
  }
}

/** The oldest goes first: what is asked for again comes back within its own time to live. */
function keep(map: Map<string, HeldAnswer>, key: string, held: HeldAnswer, limit: number): void {
  map.delete(key);
  map.set(key, held);
  const oldest = map.size > limit ? map.keys().next().value : undefined;
  if (oldest !== undefined) map.delete(oldest);
}
