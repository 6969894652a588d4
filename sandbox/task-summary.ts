import { z } from "zod";
import { type AuditRecord, type TaskCounts, taskCountsSchema } from "./audit-entry.ts";
import { fileRequestSchema, INTENTS, RISK_TAGS, type RiskTag } from "./request.ts";

/** Entries of each list; what is beyond is only counted. */
const MAX_LISTED = 200;

const paths = z.array(z.string());

/**
 * What one task did. Each list holds different things in the order of their first time, at most 200; `counts`
 * has the operations, repeats included, and `leftOut` how many of them no list shows. Times are RFC 3339.
 */
export const taskSummarySchema = z.strictObject({
  taskId: fileRequestSchema.shape.taskId,
  started: z.string(),
  /** Null for a task that goes on, or whose process was killed. */
  ended: z.string().nullable(),
  read: paths,
  listed: paths,
  written: paths,
  created: paths,
  deleted: paths,
  moved: z.array(z.strictObject({ from: z.string(), to: z.string() })),
  /** What a human was asked. */
  asked: z.array(z.strictObject({ path: z.string(), answer: z.string() })),
  refused: z.array(z.strictObject({ path: z.string(), reason: z.string(), ruleId: z.string().nullable() })),
  /** Allowed, and the file system said no. */
  failed: z.array(z.strictObject({ path: z.string(), intent: z.enum(INTENTS), code: z.string() })),
  /** Begun, and nothing tells how it ended: it is under way, or the process was killed. */
  unknown: z.array(z.strictObject({ path: z.string(), intent: z.enum(INTENTS) })),
  bytesRead: z.int().min(0),
  bytesWritten: z.int().min(0),
  /** Of everything that was asked for, in the order of their definition. */
  tags: z.array(z.enum(RISK_TAGS)),
  counts: taskCountsSchema,
  leftOut: z.int().min(0),
});
export type TaskSummary = z.infer<typeof taskSummarySchema>;

type ListName = "read" | "listed" | "written" | "created" | "deleted" | "moved" | "asked" | "refused" | "failed" | "unknown";

const DONE = { read: "read", list: "listed", write: "written", create: "created", delete: "deleted" } as const;

/** Sums the entries of one task, in their order. */
export class TaskTally {
  private readonly draft: TaskSummary;
  /** Requests without an outcome, by their `seq`. */
  private readonly pending = new Map<number, AuditRecord>();
  private readonly tags = new Set<RiskTag>();
  private readonly seen = new Set<string>();

  constructor(taskId: string, started: string) {
    const counts = { read: 0, listed: 0, written: 0, created: 0, deleted: 0, moved: 0, asked: 0, refused: 0, failed: 0, unknown: 0 };
    const lists = { read: [], listed: [], written: [], created: [], deleted: [], moved: [], asked: [], refused: [], failed: [], unknown: [] };
    this.draft = { taskId, started, ended: null, ...lists, bytesRead: 0, bytesWritten: 0, tags: [], counts, leftOut: 0 };
  }

  take(entry: AuditRecord): void {
    if (entry.event === "ended") this.draft.ended = entry.time;
    if (entry.kind === "request") {
      this.pending.set(entry.seq, entry);
      for (const tag of entry.tags ?? []) this.tags.add(tag);
    } else if (entry.kind === "confirmation") {
      const { path = "", answer = "" } = entry;
      this.note(this.draft.asked, "asked", { path, answer });
    } else if (entry.kind === "outcome" && entry.of !== undefined) {
      const request = this.pending.get(entry.of);
      this.pending.delete(entry.of);
      if (request !== undefined) this.settle(request, entry);
    }
  }

  counts(): TaskCounts {
    return { ...this.draft.counts, unknown: this.draft.counts.unknown + this.pending.size };
  }

  summarize(): TaskSummary {
    const begun = [...this.pending.values()].map(({ path = "", intent = "read" }) => ({ path, intent }));
    const unknown = [...this.draft.unknown, ...begun];
    return {
      ...this.draft,
      unknown: unknown.slice(0, MAX_LISTED),
      tags: RISK_TAGS.filter((tag) => this.tags.has(tag)),
      counts: this.counts(),
      leftOut: this.draft.leftOut + Math.max(0, unknown.length - MAX_LISTED),
    };
  }

  private settle(request: AuditRecord, outcome: AuditRecord): void {
    const { path = "", intent = "read" } = request;
    switch (outcome.outcome) {
      case "done":
        return this.settleDone(request, outcome.size ?? 0);
      case "refused":
        return this.note(this.draft.refused, "refused", { path, reason: outcome.refusal ?? "rule", ruleId: outcome.ruleId ?? request.ruleId ?? null });
      case "failed":
        return this.note(this.draft.failed, "failed", { path, intent, code: outcome.code ?? "" });
      case "unknown":
      case undefined:
        return this.note(this.draft.unknown, "unknown", { path, intent });
    }
  }

  private settleDone({ path = "", destination = "", intent = "read" }: AuditRecord, size: number): void {
    if (intent === "move" || intent === "rename") return this.note(this.draft.moved, "moved", { from: path, to: destination });
    const name = DONE[intent];
    this.note(this.draft[name], name, path);
    if (name === "read") this.draft.bytesRead += size;
    if (name === "written" || name === "created") this.draft.bytesWritten += size;
  }

  private note<T extends object | string>(list: T[], name: ListName, value: T): void {
    this.draft.counts[name] += 1;
    const key = `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`;
    if (this.seen.has(key)) return;
    if (list.length >= MAX_LISTED) {
      this.draft.leftOut += 1;
      return;
    }
    this.seen.add(key);
    list.push(value);
  }
}

/**
 * Sums every task of a log, in the order of their first entry. An id that is used again after the task's end, or
 * in another process, is another task.
 */
export function summarizeTasks(entries: Iterable<AuditRecord>): TaskSummary[] {
  const all: TaskTally[] = [];
  const open = new Map<string, TaskTally>();
  for (const entry of entries) {
    if (entry.kind === "session") open.clear();
    if (entry.task === undefined) continue;
    let tally = open.get(entry.task);
    if (tally === undefined && entry.kind === "request") {
      tally = new TaskTally(entry.task, entry.time);
      open.set(entry.task, tally);
      all.push(tally);
    }
    tally?.take(entry);
    if (entry.event === "ended") open.delete(entry.task);
  }
  return all.map((tally) => tally.summarize());
}
