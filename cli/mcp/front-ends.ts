import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import type { FrontEnd, Question, Reply, Scope } from "../../sandbox/confirmation.ts";
import { describePrompt } from "../ui/confirm-text.ts";
import { findCall } from "./call.ts";

/** Often enough for clients that give up on a call of which they hear nothing. */
const TICK_MS = 5000;
/** The protocol's own library takes none above. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const NO = "no";
const WORDS: Readonly<Record<Scope, string>> = { once: "yes, this once", session: "yes, also whatever this rule asks again in this session", rule: "yes, always for this rule" };

/**
 * Asks by a form of the client, where it has such: only exactly one of the words that were offered is a yes. Declined,
 * dismissed, malformed and failed are all a no.
 */
export const elicitation: FrontEnd = {
  kind: "mcp",
  ask: async (question, signal) => {
    const elicit = findCall()?.elicit;
    if (elicit === undefined) return "unavailable";
    return await whileAsking("waiting for an answer", signal, async (over) => {
      const { action, content } = await elicit(makeForm(question), { signal: over, timeout: Math.min(question.timeoutMs, MAX_TIMER_MS) });
      return action === "accept" ? readWord(content?.["answer"], question.scopes) : "deny";
    });
  },
};

/** Makes the queue's questions part of the call that they are asked for: with the call they go. */
export function bindQueue(queue: FrontEnd): FrontEnd {
  return { kind: "queue", ask: async (question, signal) => await whileAsking("waiting for an answer: agentbox confirm list", signal, async (over) => await queue.ask(question, over)) };
}

async function whileAsking(message: string, signal: AbortSignal, ask: (over: AbortSignal) => Promise<unknown>): Promise<unknown> {
  const call = findCall();
  // Nobody would hear the answer.
  if (call === undefined || call.signal.aborted) return "deny";
  let ticks = 0;
  const tick = (): void => call.report(message, (ticks += 1));
  tick();
  const timer = setInterval(tick, TICK_MS);
  try {
    const reply = await ask(AbortSignal.any([signal, call.signal]));
    return call.signal.aborted ? "deny" : reply;
  } finally {
    clearInterval(timer);
  }
}

/** Plain words as values: every client can show them, and no other text is one of them. */
function makeForm(question: Question): ElicitRequestFormParams {
  return {
    mode: "form",
    message: ["The file guard asks whether this may be done:", ...describePrompt(question)].join("\n"),
    requestedSchema: {
      type: "object",
      properties: { answer: { type: "string", title: "May it be done?", enum: [NO, ...question.scopes.map((scope) => WORDS[scope])] } },
      required: ["answer"],
    },
  };
}

function readWord(answer: unknown, scopes: readonly Scope[]): Reply {
  return scopes.find((scope) => WORDS[scope] === answer) ?? "deny";
}
