import { randomUUID } from "node:crypto";
import { KnownError } from "../policy/errors.ts";
import { quotePath } from "../policy/parsed.ts";
import type { AuditedOperation, AuditedRequest, AuditLogger } from "./audit-logger.ts";
import type { Answer, Prompt } from "./confirmation.ts";
import type { ConfirmationBroker } from "./confirmation-broker.ts";
import { FileError, GuardError } from "./errors.ts";
import type { Verdict } from "./request.ts";

/** What was found out about a request before anything was done. */
export type Judged = { verdict: Verdict; root: string; path: string; destinationPath?: string | undefined; size?: number | undefined };

/** What an operation did, for the log. An operation that is still going on (a stream) tells it itself, later. */
type Done<T> = { response: T; outcome: { size?: number | undefined; digest?: string | undefined } | "later" };

export type Guarded<J extends Judged, T> = {
  sessionId: string;
  request: AuditedRequest;
  /** Locates and decides; throws GuardError or FileError. */
  judge: () => J;
  /** Does it, with what was judged; `confirmed` where a human said yes. */
  operate: (judged: J, state: { confirmed: boolean; operation: AuditedOperation }) => Promise<Done<T>>;
  /** Called where a human said yes to this one operation: what it is about has to stay as it was. */
  hold: () => void;
};

/**
 * The order that every operation keeps: judge, write down, ask, do, write down how it ended. What cannot be written down
 * is not done; what is refused is in the log with its reason before the caller hears of it.
 */
export async function runGuarded<J extends Judged, T>({ audit, broker }: { audit: AuditLogger; broker: ConfirmationBroker }, { sessionId, request, judge, operate, hold }: Guarded<J, T>): Promise<T> {
  let judged: J;
  try {
    judged = judge();
  } catch (error) {
    endWith(audit.begin(request), error);
    throw error;
  }
  const { verdict } = judged;
  const operation = audit.begin({ ...request, resolvedPath: judged.path, destinationPath: judged.destinationPath ?? request.destinationPath, sizeHint: judged.size }, verdict);
  try {
    if (verdict.decision === "deny") throw denied(verdict, judged);
    const answer = verdict.decision === "confirm" ? await ask({ broker, operation, sessionId, request, judged }) : undefined;
    if (answer?.scope === "once") hold();
    const { response, outcome } = await operate(judged, { confirmed: answer !== undefined, operation });
    if (outcome !== "later") operation.end({ outcome: "done", ...outcome });
    return response;
  } catch (error) {
    endWith(operation, error);
    throw error;
  }
}

/** Writes down how an operation ended that threw. */
export function endWith(operation: AuditedOperation, error: unknown): void {
  if (error instanceof GuardError) operation.end({ outcome: "refused", refusal: error.refusal, ruleId: error.rule });
  else if (error instanceof FileError) operation.end({ outcome: "failed", code: error.code });
  else if (error instanceof KnownError) operation.end({ outcome: "failed", code: "EINVAL" });
  // A bug, or a caller's stream that broke: nobody knows how far it came.
  else operation.end({ outcome: "unknown" });
}

function denied({ ruleId, reason }: Verdict, { path }: Judged): GuardError {
  const refusal = ruleId === "invariant:outside-roots" ? "outside-roots" : ruleId === "invariant:cross-root" ? "cross-root" : "rule";
  return new GuardError(refusal, ruleId, { what: `${quotePath(path)}: ${reason}`, fix: "change the rule in [sandbox] of the configuration, or do without" });
}

async function ask({ broker, operation, sessionId, request, judged }: { broker: ConfirmationBroker; operation: AuditedOperation; sessionId: string; request: AuditedRequest; judged: Judged }): Promise<Answer> {
  const { verdict, root, path, destinationPath: destination, size } = judged;
  const prompt: Prompt = { id: randomUUID(), sessionId, taskId: request.taskId, root, verdict, intent: request.intent, path, destination, size };
  const answer = await broker.confirm(prompt);
  operation.confirm({ prompt: renderPrompt(prompt), ...answer });
  if (answer.answer !== "approved") throw unanswered(answer, verdict, path);
  return answer;
}

/** One line that says what a human is asked about. */
function renderPrompt({ intent, path, destination, size, verdict }: Pick<Prompt, "intent" | "path" | "destination" | "size" | "verdict">): string {
  const where = destination === undefined ? quotePath(path) : `${quotePath(path)} to ${quotePath(destination)}`;
  return `${intent} ${where}${size === undefined ? "" : ` (${size} bytes)`}: ${verdict.reason} [${verdict.ruleId}]`;
}

function unanswered({ answer, by }: Answer, { ruleId, reason }: Verdict, path: string): GuardError {
  if (answer === "denied") return new GuardError("declined", ruleId, { what: `${quotePath(path)}: a human said no (${reason})`, fix: "do not try again without asking why" });
  const why = answer === "timed-out" ? "nobody answered in time" : by === "nobody" ? "there is nobody to ask" : "nobody could be asked";
  return new GuardError("unanswered", ruleId, { what: `${quotePath(path)}: ${why} (${reason})`, fix: "a human can answer with: agentbox confirm list" });
}
