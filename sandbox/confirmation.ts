import type { Intent, Verdict } from "./request.ts";

/** For how long a yes holds: this operation; the session, for whatever the same rule asks again; or for that rule for good. */
export const SCOPES = ["once", "session", "rule"] as const;
export type Scope = (typeof SCOPES)[number];

/** What a human is asked about. */
export type Prompt = {
  /** One to 64 letters, digits, dots, dashes and underscores; each once in a session. */
  id: string;
  sessionId: string;
  taskId: string;
  /** The canonical path of the granted folder. */
  root: string;
  verdict: Verdict;
  intent: Intent;
  path: string;
  destination?: string | undefined;
  /** Bytes. */
  size?: number | undefined;
};

/** A prompt as a front end gets it. */
export type Question = Prompt & {
  /** The yeses that may be given; what the guard asks about itself cannot be answered for good. */
  scopes: readonly Scope[];
  /** Milliseconds until it is a no. */
  timeoutMs: number;
};

/** Who answered; `nobody` where there was none to ask. */
export type Answerer = FrontEnd["kind"] | "nobody";

/** What became of a prompt. Everything but `approved` is a no. */
export type Answer = { answer: "approved" | "denied" | "timed-out" | "unavailable"; scope: Scope; by: Answerer };

/** What a front end may reply: a yes by its scope, a no, or that it can ask nobody. */
export type Reply = Scope | "deny" | "unavailable";

/** A way to ask a human. */
export type FrontEnd = {
  kind: "terminal" | "callback" | "mcp" | "queue";
  /**
   * Asks, and returns a `Reply`. Whatever is not exactly one, and a rejection, is a no. When `signal` aborts the
   * answer is not wanted any more: what was drawn or written goes away.
   */
  ask: (question: Question, signal: AbortSignal) => Promise<unknown>;
};

/** The front end of a program that embeds the guard: its own function asks. */
export function makeCallback(ask: FrontEnd["ask"]): FrontEnd {
  return { kind: "callback", ask };
}
