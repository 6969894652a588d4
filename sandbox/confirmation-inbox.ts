import { ConfigError } from "../policy/errors.ts";
import { takeAuditLock } from "./audit-lock.ts";
import type { Scope } from "./confirmation.ts";
import { answerName, digestQuestion, parseQueued, QUEUE_LOCK, questionName, questionSchema, queuePlace, type QueuedQuestion } from "./confirmation-file.ts";
import { PrivateDirectory } from "./private-directory.ts";
import { sessionIdSchema } from "./request.ts";

/** A prompt that waits, as the human's side sees it. */
export type WaitingPrompt = {
  question: QueuedQuestion;
  /** `digestQuestion` of its file. */
  digest: string;
  /** True where the process that asked is gone, and nobody waits for an answer. */
  stale: boolean;
};

/** What was found: prompts in the order in which they were asked, and sentences about queues that cannot be looked into. */
export type Inbox = { prompts: readonly WaitingPrompt[]; problems: readonly string[] };

/** Reads the queues of all sessions; changes nothing. */
export function readInbox(agentboxHome: string): Inbox {
  const problems: string[] = [];
  const prompts = listSessions(agentboxHome, problems).flatMap((session) => within(agentboxHome, session, (directory) => readQueue(directory, session), problems) ?? []);
  return { prompts: prompts.toSorted((a, b) => (a.question.created < b.question.created ? -1 : 1)), problems };
}

/** Answers a prompt. `gone` where it does not wait any more or is not what was shown, `answered` where it has an answer. */
export function answerPrompt(agentboxHome: string, { question: { id, nonce, sessionId }, digest }: WaitingPrompt, reply: Scope | "deny"): "done" | "gone" | "answered" {
  const outcome = within(agentboxHome, sessionId, (directory) => {
    const found = directory.read(questionName(id));
    if (!("content" in found) || digestQuestion(found.content) !== digest) return "gone";
    return directory.add(answerName(id), `${JSON.stringify({ v: 1, id, nonce, question: digest, reply })}\n`) ? "done" : "answered";
  });
  return outcome ?? "gone";
}

/** Removes what a session that is gone has asked. */
export function removeStale(agentboxHome: string, prompts: readonly WaitingPrompt[]): void {
  for (const { question: { id, sessionId }, stale } of prompts) {
    if (!stale) continue;
    within(agentboxHome, sessionId, (directory) => {
      // A new process may have taken the session over meanwhile.
      if (isServed(directory)) return;
      directory.remove(questionName(id));
      directory.remove(answerName(id));
    });
  }
}

function listSessions(agentboxHome: string, problems: string[]): string[] {
  const names = guarded(problems, () => {
    const guard = PrivateDirectory.open(agentboxHome, ["guard"], { make: false });
    try {
      return guard?.names() ?? [];
    } finally {
      guard?.close();
    }
  });
  return (names ?? []).filter((name) => sessionIdSchema.safeParse(name).success).toSorted();
}

function readQueue(directory: PrivateDirectory, session: string): WaitingPrompt[] {
  const stale = !isServed(directory);
  return directory.names().flatMap((name): WaitingPrompt[] => {
    const found = name.endsWith(".json") ? directory.read(name) : undefined;
    if (found === undefined || !("content" in found)) return [];
    const question = parseQueued(questionSchema, found.content);
    // A question that lies elsewhere than it says would be answered elsewhere.
    if (question === undefined || questionName(question.id) !== name || question.sessionId !== session) return [];
    return [{ question, digest: digestQuestion(found.content), stale }];
  });
}

/** Whoever serves a queue holds its lock until its process ends. */
function isServed(directory: PrivateDirectory): boolean {
  // Not opened: a process that closes a file gives back all of its locks on it, and this may be the one that serves.
  if (!directory.has(QUEUE_LOCK)) return false;
  try {
    const lock = takeAuditLock(directory.locate(QUEUE_LOCK));
    if (lock === "held") return true;
    lock.release();
    return false;
  } catch {
    // What is no lock nobody holds.
    return false;
  }
}

function within<T>(agentboxHome: string, session: string, use: (directory: PrivateDirectory) => T, problems?: string[]): T | undefined {
  return guarded(problems, () => {
    const directory = PrivateDirectory.open(agentboxHome, queuePlace(session), { make: false });
    try {
      return directory === undefined ? undefined : use(directory);
    } finally {
      directory?.close();
    }
  });
}

/** A queue that is not private is told of, and the others are read all the same. */
function guarded<T>(problems: string[] | undefined, use: () => T): T | undefined {
  try {
    return use();
  } catch (error) {
    if (problems === undefined || !(error instanceof ConfigError)) throw error;
    problems.push(error.message);
    return undefined;
  }
}
