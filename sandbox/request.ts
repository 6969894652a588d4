import { z } from "zod";
import { SANDBOX_INTENTS, SANDBOX_TAGS } from "../policy/sandbox-words.ts";

/** What an operation is for; `list` is beside the seed's six, for directories. */
export const INTENTS = SANDBOX_INTENTS;
export const intentSchema = z.enum(INTENTS);
export type Intent = z.infer<typeof intentSchema>;

/** Ids stand in file names and log lines. */
export const sessionIdSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "one to 64 letters, digits, dots, dashes and underscores");

export const fileRequestSchema = z.strictObject({
  sessionId: sessionIdSchema,
  taskId: sessionIdSchema,
  /** Absolute, or relative to the first root of the session. */
  path: z.string().min(1),
  intent: intentSchema,
  /** Bytes that will be read or written, where they are known beforehand. */
  sizeHint: z.int().min(0).optional(),
});
export type FileRequest = z.infer<typeof fileRequestSchema>;

/** New contents come whole, or as a stream of pieces for what is large. */
export type FileContent = string | Uint8Array | AsyncIterable<Uint8Array>;
export type WriteRequest = FileRequest & { content: FileContent };

export const moveRequestSchema = fileRequestSchema.extend({ destinationPath: z.string().min(1) });
export type MoveRequest = z.infer<typeof moveRequestSchema>;

export const listRequestSchema = fileRequestSchema.extend({
  intent: z.literal("list"),
  /** Names below directories as well; false when left out. */
  recursive: z.boolean().optional(),
  /** The most entries to answer, 10,000 when left out. */
  limit: z.int().min(1).max(100_000).optional(),
});
export type ListRequest = z.infer<typeof listRequestSchema>;

export const restoreRequestSchema = z.strictObject({ sessionId: sessionIdSchema, taskId: sessionIdSchema, trashId: z.string().min(1).max(64) });
export type RestoreRequest = z.infer<typeof restoreRequestSchema>;

/** What was decided about a request, by which rule, and what makes it risky. */
export type Verdict = { decision: "allow" | "deny" | "confirm"; ruleId: string; tags: readonly RiskTag[]; reason: string };

export const RISK_TAGS = SANDBOX_TAGS;
export type RiskTag = (typeof RISK_TAGS)[number];

/** `size` in bytes; `digest` is SHA-256 of the contents in hexadecimal. */
export type FileResponse = {
  path: string;
  intent: Intent;
  verdict: Verdict;
  /** True where a human said yes. */
  confirmed: boolean;
  size?: number | undefined;
  digest?: string | undefined;
  /** Of a read: the bytes, or a stream where the file is large. */
  content?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Of a deletion into the trash: what `restore` takes. */
  trashId?: string | undefined;
};

export type ListEntry = { name: string; path: string; kind: "file" | "directory" | "link" | "other"; size: number };
export type ListResponse = { path: string; entries: readonly ListEntry[]; truncated: boolean; verdict: Verdict };
