import { hash } from "node:crypto";
import { z } from "zod";
import { SCOPES } from "./confirmation.ts";
import { intentSchema, RISK_TAGS, sessionIdSchema } from "./request.ts";

/** A path of 4095 bytes or a pattern of 4096 characters, escaped. */
const text = z.string().max(32_768);
const nonce = z.string().regex(/^[0-9a-f]{32}$/);

/** A prompt that waits in a queue, as its file holds it. */
export const questionSchema = z.strictObject({
  v: z.literal(1),
  id: sessionIdSchema,
  /** An answer has to repeat it: one to an earlier prompt of the same id is none to this. */
  nonce,
  /** RFC 3339. */
  created: z.iso.datetime(),
  timeoutMs: z.number(),
  sessionId: sessionIdSchema,
  taskId: sessionIdSchema,
  root: text,
  intent: intentSchema,
  path: text,
  destination: text.optional(),
  size: z.int().min(0).optional(),
  verdict: z.strictObject({ decision: z.literal("confirm"), ruleId: text, tags: z.array(z.enum(RISK_TAGS)).readonly(), reason: text }),
  scopes: z.array(z.enum(SCOPES)).readonly(),
});
export type QueuedQuestion = z.infer<typeof questionSchema>;

/** What answers it. `question` is `digestQuestion` of what the human was shown. */
export const queuedAnswerSchema = z.strictObject({ v: z.literal(1), id: sessionIdSchema, nonce, question: z.string().regex(/^[0-9a-f]{64}$/), reply: z.enum([...SCOPES, "deny"]) });

/** The whole file counts: one that was changed after it was written is another question. */
export function digestQuestion(content: string): string {
  return hash("sha256", content);
}

/** Where the prompts of a session wait, below `~/.agentbox`. */
export function queuePlace(sessionId: string): readonly string[] {
  return ["guard", sessionId, "confirm"];
}

/** The files of a prompt. */
export function questionName(id: string): string {
  return `${id}.json`;
}

export function answerName(id: string): string {
  return `${id}.answer`;
}

/** Held as long as the session lives; begins with a dot, as no id does. */
export const QUEUE_LOCK = ".lock";

/** Reads a file's content by a schema; undefined for anything else. */
export function parseQueued<T>(schema: z.ZodType<T>, content: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(content)).data;
  } catch {
    return undefined;
  }
}
