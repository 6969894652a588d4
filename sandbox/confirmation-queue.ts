import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError } from "../policy/errors.ts";
import { type AuditLock, takeAuditLock } from "./audit-lock.ts";
import type { FrontEnd, Question, Reply } from "./confirmation.ts";
import { answerName, digestQuestion, parseQueued, QUEUE_LOCK, questionName, queuedAnswerSchema, queuePlace, type QueuedQuestion } from "./confirmation-file.ts";
import { PrivateDirectory } from "./private-directory.ts";
import { sessionIdSchema } from "./request.ts";

/** The front end of sessions that have no terminal; `close` gives the queue back. */
export type QueueFrontEnd = FrontEnd & { close: () => void };

/** A person needs longer, and a notification of the kernel is not to be had on every disk. */
const POLL_MS = 200;
/** `agentbox confirm list` holds the lock for a moment to see whether it is free. */
const LOCK_TRIES = 40;
const LOCK_WAIT_MS = 25;

/**
 * Opens the queue of a session: prompts become files of `~/.agentbox/guard/SESSION/confirm`, and `agentbox confirm`
 * answers them. Throws ConfigError where that directory is not private, or another process serves it.
 */
export async function openConfirmationQueue({ agentboxHome, sessionId }: { agentboxHome: string; sessionId: string }): Promise<QueueFrontEnd> {
  const directory = PrivateDirectory.open(agentboxHome, queuePlace(sessionIdSchema.parse(sessionId)), { make: true });
  if (directory === undefined) throw new Error("a directory that is made is there");
  try {
    const lock = await takeLock(directory);
    // Nobody waits for what a killed process asked.
    for (const name of directory.names()) if (!name.startsWith(QUEUE_LOCK)) directory.remove(name);
    return {
      kind: "queue",
      ask: async (question, signal) => await ask(directory, question, signal),
      close: () => {
        lock.release();
        directory.close();
      },
    };
  } catch (error) {
    directory.close();
    throw error;
  }
}

async function takeLock(directory: PrivateDirectory): Promise<AuditLock> {
  directory.add(QUEUE_LOCK, "");
  for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
    const lock = tryLock(directory);
    if (lock !== "held") return lock;
    await sleep(LOCK_WAIT_MS);
  }
  throw new ConfigError({ what: "another process asks for this session already", expected: "a session of its own for each", fix: "choose another --session", place: { file: directory.path } });
}

function tryLock(directory: PrivateDirectory): AuditLock | "held" {
  try {
    return takeAuditLock(directory.locate(QUEUE_LOCK));
  } catch (error) {
    throw new ConfigError({ what: `the lock cannot be taken (${error instanceof Error ? error.message : String(error)})`, expected: "an empty file that the guard made", fix: `remove ${QUEUE_LOCK} in this directory`, place: { file: directory.path } }, { cause: error });
  }
}

async function ask(directory: PrivateDirectory, question: Question, signal: AbortSignal): Promise<Reply> {
  const { id, sessionId, taskId, root, intent, path, destination, size, scopes, timeoutMs } = question;
  // The id is part of a path from here on.
  if (!sessionIdSchema.safeParse(id).success) return "deny";
  const { ruleId, tags, reason } = question.verdict;
  const nonce = randomBytes(16).toString("hex");
  const queued: QueuedQuestion = { v: 1, id, nonce, created: new Date().toISOString(), timeoutMs, sessionId, taskId, root, intent, path, destination, size, verdict: { decision: "confirm", ruleId, tags, reason }, scopes };
  const content = `${JSON.stringify(queued)}\n`;
  directory.remove(answerName(id));
  if (!directory.add(questionName(id), content)) return "deny";
  try {
    return await awaitAnswer(directory, { id, nonce, content }, signal);
  } finally {
    directory.remove(questionName(id));
    directory.remove(answerName(id));
  }
}

type Asked = { id: string; nonce: string; content: string };

async function awaitAnswer(directory: PrivateDirectory, { id, nonce, content }: Asked, signal: AbortSignal): Promise<Reply> {
  while (!signal.aborted) {
    const found = directory.read(answerName(id));
    if ("content" in found) {
      const answer = parseQueued(queuedAnswerSchema, found.content);
      // Whatever else lies there is nobody's yes.
      return answer?.id === id && answer.nonce === nonce && answer.question === digestQuestion(content) ? answer.reply : "deny";
    }
    if (found.flaw === "foreign") return "deny";
    const own = directory.read(questionName(id));
    // A question that was taken away or exchanged cannot be answered any more.
    if (!("content" in own) || own.content !== content) return "deny";
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
  return "deny";
}
