import { join } from "node:path";
import { type AuditEntry, type AuditRecord, NO_PREVIOUS, parseEntry, renderEntry } from "./audit-entry.ts";
import { AUDIT_LOG_FILE, AuditFile } from "./audit-file.ts";
import { type AuditLock, takeAuditLock } from "./audit-lock.ts";
import { GuardError } from "./errors.ts";

/** What an entry says, without its place in the log. */
export type AuditFields = Omit<AuditRecord, "v" | "seq" | "time" | "session">;
type Waiting = { fields: AuditFields; time: string };

const SYNC_MS = 1000;

/**
 * The one writer of a session's audit log: numbers, chains, writes and syncs its entries, and says "no" while the
 * disk does. Every method but `settle` throws GuardError "audit" then.
 */
export class AuditWriter {
  private readonly file: AuditFile;
  private readonly lock: AuditLock;
  private readonly session: string;
  private seq: number;
  private prev: string;
  /** Outcomes that the disk did not take yet. */
  private readonly waiting: Waiting[] = [];
  private timer: NodeJS.Timeout | undefined;
  /** The last sync that runs or waits to, and the one that waits. */
  private syncs: Promise<void> = Promise.resolve();
  private queued: Promise<void> | undefined;
  private closing = false;
  private clock = { ms: 0, text: "" };
  /** Why nothing is written any more, whatever becomes of the disk. */
  private over: { why: string; cause?: unknown } | undefined;
  /** Called with each entry that is in the file. */
  private readonly onRecord: (record: AuditRecord) => void;

  private constructor({ file, lock, session, last, onRecord }: Opened) {
    this.file = file;
    this.lock = lock;
    this.session = session;
    this.seq = last?.seq ?? 0;
    this.prev = last?.hash ?? NO_PREVIOUS;
    this.onRecord = onRecord;
  }

  /**
   * Opens the log of a session in its directory, or makes both. What a killed process left half written is moved
   * into a file beside it. Throws GuardError "audit" where it cannot be written, or another one writes it.
   */
  static open({ directory, session, onRecord }: { directory: string; session: string; onRecord: (record: AuditRecord) => void }): AuditWriter {
    const path = join(directory, AUDIT_LOG_FILE);
    const file = guardAudit(path, () => new AuditFile(directory));
    let lock: AuditLock | undefined;
    try {
      lock = guardAudit(path, () => holdLock(directory));
      const { last, torn } = guardAudit(path, () => readEnd(file, session));
      const event = last === undefined ? "opened" : "resumed";
      const aside = torn.length === 0 ? undefined : { bytes: torn.length, file: guardAudit(path, () => file.setAside(torn)) };
      const writer = new AuditWriter({ file, lock, session, last, onRecord });
      writer.record({ kind: "session", event, torn: aside });
      return writer;
    } catch (error) {
      file.close();
      lock?.release();
      throw error;
    }
  }

  get path(): string {
    return this.file.path;
  }

  /** Hash of the last entry. */
  get head(): string {
    return this.prev;
  }

  /** Appends an entry after those that wait; returns its number. */
  record(fields: AuditFields): number {
    const time = this.readClock();
    if (this.over !== undefined) throw refuse(this.file.path, this.over.why, this.over.cause);
    guardAudit(this.file.path, () => {
      this.file.check();
      this.flush();
      this.append({ fields, time });
    });
    return this.seq;
  }

  /** Appends an outcome, or keeps it until the disk takes it. */
  settle(fields: AuditFields): void {
    this.waiting.push({ fields, time: this.readClock() });
    if (this.over !== undefined) return;
    try {
      this.flush();
    } catch {
      // It waits, and `record` says why to who wants to begin something else.
      this.wake();
    }
  }

  /** Waits until all that was recorded is on the disk. */
  async sync(): Promise<void> {
    await this.queueSync();
    if (this.over !== undefined) throw refuse(this.file.path, this.over.why, this.over.cause);
  }

  /** Writes down the end of the session, syncs, and gives the log back. Throws GuardError "audit" where the disk does not take it. */
  async close(): Promise<void> {
    if (this.closing) return;
    this.closing = true;
    try {
      this.record({ kind: "session", event: "closed" });
      await this.sync();
    } finally {
      this.over = { why: "it was closed" };
      clearTimeout(this.timer);
      await this.syncs;
      this.file.close();
      this.lock.release();
    }
  }

  /** Many entries share a millisecond, and its text costs as much as their hash. */
  private readClock(): string {
    const ms = Date.now();
    if (ms !== this.clock.ms) this.clock = { ms, text: new Date(ms).toISOString() };
    return this.clock.text;
  }

  private flush(): void {
    for (;;) {
      const [first] = this.waiting;
      if (first === undefined) return;
      this.append(first);
      this.waiting.shift();
    }
  }

  private append({ fields, time }: Waiting): void {
    const record: AuditRecord = { v: 1, seq: this.seq + 1, time, session: this.session, ...fields };
    const { line, hash } = renderEntry(record, this.prev);
    this.file.append(line);
    this.seq += 1;
    this.prev = hash;
    this.wake();
    this.onRecord(record);
  }

  private wake(): void {
    this.timer ??= setTimeout(() => void this.tick(), SYNC_MS).unref();
  }

  private async tick(): Promise<void> {
    this.timer = undefined;
    if (this.over !== undefined) return;
    try {
      this.file.check();
      this.flush();
    } catch {
      // `record` says why to who wants to begin something.
    }
    await this.queueSync();
  }

  /** One sync at a time; who asks while one runs shares the next, since the running one may not cover all. */
  private async queueSync(): Promise<void> {
    this.queued ??= this.syncs = this.syncs.then(async () => await this.syncNow());
    await this.queued;
  }

  private async syncNow(): Promise<void> {
    this.queued = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
    try {
      await this.file.sync();
    } catch (cause) {
      // The kernel forgets what it could not write: a later sync that succeeds proves nothing.
      this.over ??= { why: `the disk lost a part of it (${errorText(cause)})`, cause };
    }
    if (this.waiting.length > 0) this.wake();
  }
}

type Opened = { file: AuditFile; lock: AuditLock; session: string; last: AuditEntry | undefined; onRecord: (record: AuditRecord) => void };

function holdLock(directory: string): AuditLock {
  const lock = takeAuditLock(join(directory, "audit.lock"));
  if (lock === "held") throw new Error("another process, or this one, writes it already");
  return lock;
}

function readEnd(file: AuditFile, session: string): { last: AuditEntry | undefined; torn: Buffer } {
  const { last, torn } = file.readTail();
  if (last === undefined) return { last, torn };
  const entry = parseEntry(last);
  // To go on behind a line that was changed would hide the change.
  if (entry === undefined) throw new Error("its last line is not what was written there");
  if (entry.session !== session) throw new Error(`it is the log of session ${entry.session}`);
  return { last: entry, torn };
}

/** Runs what reads or writes a log, and makes what it throws a GuardError "audit". */
export function guardAudit<T>(file: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw error instanceof GuardError ? error : refuse(file, errorText(error), error);
  }
}

function refuse(file: string, why: string, cause: unknown): GuardError {
  return new GuardError(
    "audit",
    "audit-log",
    { what: `the audit log cannot be written: ${why}`, expected: "a log that takes the line of an operation before it happens", fix: "make room on the disk, or end what else writes there; where the log was changed, removed or replaced, move it away and begin another session", place: { file } },
    { cause },
  );
}

function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
