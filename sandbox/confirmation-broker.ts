import { INVARIANT_PREFIX } from "../policy/sandbox-words.ts";
import type { AlwaysAnswers } from "./confirmation-always.ts";
import { type Answer, type FrontEnd, type Prompt, type Question, type Scope, SCOPES } from "./confirmation.ts";
import { judgeInvariants } from "./policy-invariants.ts";

export type BrokerOptions = {
  /** Asked one after the other, until one is not `unavailable`. */
  frontEnds: readonly FrontEnd[];
  /** Milliseconds that a human has. */
  timeoutMs: number;
  /** Answers for good, and what they are tied to; without it there are none. */
  always?: { answers: Pick<AlwaysAnswers, "find" | "add">; fingerprint: (ruleId: string) => string | undefined } | undefined;
  /** A clock in milliseconds that is never set back; the process's own when left out. */
  now?: (() => number) | undefined;
};

type Waiting = { prompt: Prompt; settle: (answer: Answer) => void };

/** A program that asks without end fills neither the memory nor the disk. */
const MAX_WAITING = 100;
/** Node takes longer times for none at all. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Holds an operation until a human has answered. Only the words of `Reply` count; every other value, an error, the end
 * of the time and the lack of anybody to ask are a no.
 */
export class ConfirmationBroker {
  private readonly options: BrokerOptions;
  private readonly now: () => number;
  /** Yeses for a session, by session and by what they are tied to; only here, never on a disk. */
  private readonly sessions = new Map<string, Map<string, Answer>>();
  private readonly waiting = new Set<Waiting>();

  constructor(options: BrokerOptions) {
    this.options = options;
    this.now = options.now ?? (() => performance.now());
  }

  /** Asks about an operation whose verdict is `confirm`; never rejects for anything that a front end does. */
  async confirm(prompt: Prompt): Promise<Answer> {
    // Nothing else is a human's to decide: a denial least of all.
    if (prompt.verdict.decision !== "confirm") return { answer: "denied", scope: "once", by: "nobody" };
    const known = this.recall(prompt);
    if (known !== undefined) return known;
    if (this.waiting.size >= MAX_WAITING) return { answer: "unavailable", scope: "once", by: "nobody" };
    return await this.ask(prompt);
  }

  /** Forgets the yeses of a session that ended, and answers no to what still waits in it. */
  forget(sessionId: string): void {
    this.sessions.delete(sessionId);
    for (const { prompt, settle } of this.waiting) if (prompt.sessionId === sessionId) settle({ answer: "denied", scope: "once", by: "nobody" });
  }

  private async ask(prompt: Prompt): Promise<Answer> {
    const { timeoutMs } = this.options;
    const deadline = this.now() + timeoutMs;
    const over = new AbortController();
    const { promise, resolve: settle } = Promise.withResolvers<Answer>();
    const own: Waiting = { prompt, settle };
    this.waiting.add(own);
    let asked: Answer["by"] = "nobody";
    const timer = setTimeout(() => settle({ answer: "timed-out", scope: "once", by: asked }), Math.min(timeoutMs, MAX_TIMER_MS));
    const askAll = async (): Promise<void> => {
      for (const { kind, ask } of this.options.frontEnds) {
        if (over.signal.aborted) return;
        asked = kind;
        const scopes = this.listScopes(prompt);
        const answer = readReply(await reply(ask, { ...prompt, scopes, timeoutMs: deadline - this.now() }, over.signal), { scopes, by: kind });
        if (answer.answer === "unavailable") continue;
        // A process that stood still hears the answer before its timer.
        return settle(this.now() > deadline ? { answer: "timed-out", scope: "once", by: kind } : answer);
      }
      settle({ answer: "unavailable", scope: "once", by: "nobody" });
    };
    void askAll();
    const answer = await promise;
    clearTimeout(timer);
    this.waiting.delete(own);
    over.abort();
    return this.remember(prompt, answer);
  }

  /** Keeps a yes that is for more than once, and gives it to whatever waits for the same. */
  private remember(prompt: Prompt, answer: Answer): Answer {
    if (answer.answer !== "approved" || answer.scope === "once") return answer;
    const kept = answer.scope === "rule" ? this.keepAlways(prompt, answer) : answer;
    if (kept.scope === "session") {
      const yeses = this.sessions.get(prompt.sessionId) ?? new Map<string, Answer>();
      this.sessions.set(prompt.sessionId, yeses.set(describeKey(prompt), kept));
    }
    for (const { prompt: other, settle } of this.waiting) {
      const known = this.recall(other);
      if (known !== undefined) settle(known);
    }
    return kept;
  }

  private keepAlways({ verdict: { ruleId } }: Prompt, answer: Answer): Answer {
    const { always } = this.options;
    const fingerprint = always?.fingerprint(ruleId);
    const kept = always !== undefined && fingerprint !== undefined && always.answers.add({ ruleId, fingerprint, by: answer.by });
    // What could not be written holds for this operation, since that is what the human saw.
    return kept ? answer : { ...answer, scope: "once" };
  }

  private recall(prompt: Prompt): Answer | undefined {
    const known = this.sessions.get(prompt.sessionId)?.get(describeKey(prompt));
    if (known !== undefined || !this.listScopes(prompt).includes("rule")) return known;
    const fingerprint = this.options.always?.fingerprint(prompt.verdict.ruleId);
    const by = fingerprint === undefined ? undefined : this.options.always?.answers.find(fingerprint);
    return by === undefined ? undefined : { answer: "approved", scope: "rule", by };
  }

  /** An invariant is behind the question also where a rule of the user asks it. */
  private listScopes({ verdict: { ruleId, tags } }: Prompt): readonly Scope[] {
    const own = !ruleId.startsWith(INVARIANT_PREFIX) && judgeInvariants(tags).length === 0 && this.options.always?.fingerprint(ruleId) !== undefined;
    return own ? SCOPES : SCOPES.filter((scope) => scope !== "rule");
  }
}

/** A rejection is no answer, and so a no; a front end may also throw at once. */
async function reply(ask: FrontEnd["ask"], question: Question, signal: AbortSignal): Promise<unknown> {
  try {
    return await ask(question, signal);
  } catch {
    return undefined;
  }
}

/** Never a truthy default: exactly a word that was offered is a yes. */
function readReply(value: unknown, { scopes, by }: { scopes: readonly Scope[]; by: FrontEnd["kind"] }): Answer {
  const scope = scopes.find((offered) => offered === value);
  if (scope !== undefined) return { answer: "approved", scope, by };
  return { answer: value === "unavailable" ? "unavailable" : "denied", scope: "once", by };
}

/** What a yes for the session is tied to: the same rule, the same risks that are asked about, and for an invariant the same folder. */
function describeKey({ verdict: { ruleId, tags }, intent, root }: Prompt): string {
  const risks = judgeInvariants(tags).map(({ id }) => id);
  return JSON.stringify(ruleId.startsWith(INVARIANT_PREFIX) ? [ruleId, intent, risks, root] : [ruleId, intent, risks]);
}
