import type { AuditRecord } from "./audit-entry.ts";
import { readAuditEntries } from "./audit-reader.ts";
import { AuditWriter, guardAudit } from "./audit-writer.ts";
import type { Answer } from "./confirmation.ts";
import type { GuardError } from "./errors.ts";
import { type FileRequest, sessionIdSchema, type Verdict } from "./request.ts";
import { summarizeTasks, type TaskSummary, TaskTally } from "./task-summary.ts";

/** What is asked for. `resolvedPath` is the canonical path, where it is known and another than `path`. */
export type AuditedRequest = Pick<FileRequest, "taskId" | "path" | "intent" | "sizeHint"> & { destinationPath?: string | undefined; resolvedPath?: string | undefined };

/** How an operation ended. `size` is in bytes, `digest` SHA-256 of the contents in hexadecimal. */
type AuditedOutcome =
  | { outcome: "done"; size?: number | undefined; digest?: string | undefined }
  | { outcome: "refused"; refusal: GuardError["refusal"]; ruleId?: string | undefined }
  | { outcome: "failed"; code: string }
  | { outcome: "unknown" };

/** An operation whose request is in the log. */
export type AuditedOperation = {
  readonly seq: number;
  /** Writes down what a human was asked about it, and the answer. Throws GuardError "audit". */
  confirm: (asked: { prompt: string } & Answer) => void;
  /**
   * Writes down how it ended; only the first call counts. Never throws, since what was done is done: an outcome
   * that the disk does not take is kept, no further operation begins before it is written, and without it the
   * log says "unknown".
   */
  end: (outcome: AuditedOutcome) => void;
};

/** A change of what a session may do. `expires` is RFC 3339. */
export type AuditedGrant = { grant: string; path: string; rights: readonly string[]; expires?: string | undefined; by?: string | undefined };

/** Tasks whose sums are kept; those of a later one are read from the log. */
const MAX_TALLIES = 1000;
/** Longer than any path that the kernel takes. */
const MAX_TEXT = 4200;

/**
 * Writes the audit log of a session: one JSON line an event, before the operation that it is about, numbered
 * without gaps and chained by hashes. It is synced at a task's end, once a second and by `close`; a process that
 * is killed loses nothing of it, a machine that loses power at most a second. While it cannot be written no
 * operation begins.
 *
 * The chain shows accidents, and edits of lines by who does not know it. Whoever may write the file can write a
 * whole new chain, or cut lines off its end: only a head that was noted elsewhere shows that (`head`,
 * `agentbox audit verify --head HASH`).
 */
export class AuditLogger {
  private readonly writer: AuditWriter;
  private readonly tallies = new Map<string, TaskTally>();
  /** Set when there were more tasks than are kept: a new one's sums are read from the log then. */
  private crowded = false;

  /**
   * Opens the log of a session in its directory, or makes both. What a killed process left half written is moved
   * into a file beside it. Throws GuardError "audit" where it cannot be written, or another one writes it.
   */
  constructor({ directory, session }: { directory: string; session: string }) {
    // What no reader takes for an entry must not be written.
    sessionIdSchema.parse(session);
    this.writer = AuditWriter.open({ directory, session, onRecord: (record) => this.tally(record) });
  }

  /** Hash of the last entry: noted elsewhere, it shows later whether the log up to here is still the same. */
  get head(): string {
    return this.writer.head;
  }

  /**
   * Writes down what is asked for and what was decided, before it is done; no verdict where none came about.
   * Throws GuardError "audit" where that is not possible, and then nothing may be done.
   */
  begin(request: AuditedRequest, verdict?: Pick<Verdict, "decision" | "ruleId" | "tags">): AuditedOperation {
    const path = shorten(request.resolvedPath ?? request.path);
    const asked = request.resolvedPath === undefined || request.resolvedPath === request.path ? undefined : shorten(request.path);
    const destination = request.destinationPath === undefined ? undefined : shorten(request.destinationPath);
    const about = { task: request.taskId, intent: request.intent, path };
    const of = this.writer.record({ kind: "request", ...about, asked, destination, size: request.sizeHint, decision: verdict?.decision, ruleId: verdict?.ruleId, tags: verdict === undefined ? undefined : [...verdict.tags] });
    let ended = false;
    return {
      seq: of,
      confirm: ({ prompt, answer, scope, by }) => void this.writer.record({ kind: "confirmation", ...about, of, prompt: shorten(prompt), answer, scope: answer === "approved" ? scope : undefined, by }),
      end: (outcome) => {
        if (!ended) this.writer.settle({ kind: "outcome", ...about, of, ...outcome });
        ended = true;
      },
    };
  }

  /** Writes down that a folder was granted. Throws GuardError "audit". */
  grant(change: AuditedGrant): void {
    this.change("grant", change);
  }

  /** Writes down that a grant was taken back, or expired. Throws GuardError "audit". */
  revoke(change: AuditedGrant): void {
    this.change("revoke", change);
  }

  /** Ends a task: writes down its sums, waits until all of it is on the disk, and tells what it did. Throws GuardError "audit". */
  async endTask(taskId: string): Promise<TaskSummary> {
    const { counts, bytesRead, bytesWritten, tags } = this.summarize(taskId);
    this.writer.record({ kind: "task", event: "ended", task: taskId, summary: { counts, bytesRead, bytesWritten, tags } });
    const summary = this.summarize(taskId);
    this.tallies.delete(taskId);
    await this.writer.sync();
    return summary;
  }

  /** Writes down the end of the session, syncs, and gives the log back. Throws GuardError "audit" where the disk does not take it. */
  async close(): Promise<void> {
    await this.writer.close();
  }

  private change(kind: "grant" | "revoke", { grant: id, path, rights, expires, by }: AuditedGrant): void {
    this.writer.record({ kind, grant: shorten(id), path: shorten(path), rights: rights.map(shorten), expires, by: by === undefined ? undefined : shorten(by) });
  }

  private summarize(taskId: string): TaskSummary {
    const tally = this.tallies.get(taskId);
    if (tally !== undefined) return tally.summarize();
    const found = this.crowded ? guardAudit(this.writer.path, () => summarizeTasks(readAuditEntries(this.writer.path))) : [];
    return found.findLast((summary) => summary.taskId === taskId) ?? new TaskTally(taskId, new Date().toISOString()).summarize();
  }

  private tally(record: AuditRecord): void {
    if (record.task === undefined) return;
    let tally = this.tallies.get(record.task);
    if (tally === undefined && record.kind === "request") {
      this.crowded ||= this.tallies.size >= MAX_TALLIES;
      if (this.crowded) return;
      tally = new TaskTally(record.task, record.time);
      this.tallies.set(record.task, tally);
    }
    tally?.take(record);
  }
}

/** An agent may ask for any text as a path, and shall not fill the disk with one. */
function shorten(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}… (${text.length} characters)`;
}
