import { hash } from "node:crypto";
import { z } from "zod";
import { escapeUnseen } from "../policy/parsed.ts";
import { SCOPES } from "./confirmation.ts";
import { REFUSALS } from "./errors.ts";
import { fileRequestSchema, intentSchema, RISK_TAGS } from "./request.ts";

/** What stands before the first entry in the chain. */
export const NO_PREVIOUS = "0".repeat(64);

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);
/** Longer texts were shortened by the logger. */
const text = z.string().max(5000);

/** What a task did, as numbers of operations. */
export const taskCountsSchema = z.strictObject({
  read: count, listed: count, written: count, created: count, deleted: count, moved: count,
  asked: count, refused: count, failed: count, unknown: count,
});
export type TaskCounts = z.infer<typeof taskCountsSchema>;

/** One line of the audit log. Sizes are bytes; contents never stand here. */
export const auditEntrySchema = z.strictObject({
  v: z.literal(1),
  /** From 1, without gaps. */
  seq: z.int().min(1),
  /** Wall clock, RFC 3339 with milliseconds; it may jump, `seq` does not. */
  time: z.string(),
  session: fileRequestSchema.shape.sessionId,
  task: fileRequestSchema.shape.taskId.optional(),
  kind: z.enum(["request", "outcome", "confirmation", "grant", "revoke", "session", "task"]),
  /** `seq` of the request that an outcome or a confirmation belongs to. */
  of: z.int().min(1).optional(),
  intent: intentSchema.optional(),
  path: text.optional(),
  /** The path as it was asked for, where `path` is what it resolved to. */
  asked: text.optional(),
  destination: text.optional(),
  size: count.optional(),
  /** SHA-256 of the contents. */
  digest: digest.optional(),
  decision: z.enum(["allow", "deny", "confirm"]).optional(),
  ruleId: text.optional(),
  tags: z.array(z.enum(RISK_TAGS)).optional(),
  refusal: z.enum(REFUSALS).optional(),
  /** What a human was asked, what the answer was, for how long a yes holds, and who gave it. */
  prompt: text.optional(),
  answer: text.optional(),
  scope: z.enum(SCOPES).optional(),
  by: text.optional(),
  outcome: z.enum(["done", "refused", "failed", "unknown"]).optional(),
  /** The kernel's word for what failed (ENOENT). */
  code: text.optional(),
  /** Of a grant: its id, what it gives, and until when. */
  grant: text.optional(),
  rights: z.array(text).optional(),
  expires: text.optional(),
  event: z.enum(["opened", "resumed", "closed", "ended"]).optional(),
  /** Of a resumed session: the bytes of the line that a killed process cut short, and the file that keeps them. */
  torn: z.strictObject({ bytes: count, file: text }).optional(),
  /** Of an ended task: its `TaskSummary` without the lists. */
  summary: z.strictObject({ counts: taskCountsSchema, bytesRead: count, bytesWritten: count, tags: z.array(z.enum(RISK_TAGS)) }).optional(),
  /** `hash` of the entry before. */
  prev: digest,
  /** See `renderEntry`. */
  hash: digest,
});
export type AuditEntry = z.infer<typeof auditEntrySchema>;

/** An entry without what ties it into the chain. */
export type AuditRecord = Omit<AuditEntry, "prev" | "hash">;

const TAIL = /,"hash":"(?<hash>[0-9a-f]{64})"\}$/;

/**
 * Renders an entry as its line, without the line end, and tells its hash: SHA-256, in hexadecimal, over the
 * UTF-8 bytes of the line before `,"hash":`. JSON and `escapeUnseen` leave no byte in a path that could end a
 * line or steer a terminal, so nobody forges a line by the name of a file.
 */
export function renderEntry(record: AuditRecord, prev: string): { line: string; hash: string } {
  const hashed = `${escapeRare(JSON.stringify(record)).slice(0, -1)},"prev":"${prev}"`;
  const own = hash("sha256", hashed, "hex");
  return { line: `${hashed},"hash":"${own}"}`, hash: own };
}

/** Reads a line, without its line end; undefined where it is no entry, not the bytes that the logger writes, or its hash is not its own. */
export function parseEntry(line: string): AuditEntry | undefined {
  const found = TAIL.exec(line);
  if (found === null || hash("sha256", line.slice(0, found.index), "hex") !== found.groups?.["hash"]) return undefined;
  const value = parseJson(line);
  // A member that stands twice would tell one reader this and another that.
  if (escapeRare(JSON.stringify(value)) !== line) return undefined;
  return auditEntrySchema.safeParse(value).data;
}

/** Most lines are plain ASCII, and this test is a third of the price. */
function escapeRare(json: string): string {
  return /[^ -~]/.test(json) ? escapeUnseen(json) : json;
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
