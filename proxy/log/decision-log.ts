import type { AllowPlace } from "../../policy/allow-command.ts";
import type { DecisionEntry } from "../../policy/decision-record.ts";
import { escapeUnseen } from "../../policy/parsed.ts";
import { LineBudget } from "./line-budget.ts";
import type { LogFile } from "./log-file.ts";
import type { Kept, PendingFile } from "./pending-file.ts";
import { nextSeq, readNumbered } from "./line-number.ts";
import { type LineFacts, renderLine } from "./line.ts";
import { type TrafficKey, type TrafficWindow, TrafficWindows } from "./traffic.ts";

/**
 * The repeats of one (protocol, host, port, reason). Until the time `until` they are only counted; who
 * holds a tally counts without asking the log.
 */
export type Tally = { key: string; until: number; count: number; kept: Kept | undefined; readonly facts: LineFacts };

const WINDOW_MS = 10_000;
const SWEEP_MS = 200;
/** Lines kept; a flood has more, of which the log will have the first. */
const MAX_KEPT = 2000;
/** Windows open at a time; the oldest closes when one more is wanted. */
const MAX_WINDOWS = 20_000;

/** A line that is in the file now, as text and as what it was made of. */
export type WrittenLine = { seq: number; text: string; entry: DecisionEntry };

export type LogOptions = {
  /** Called when the log fails, and when it works again. */
  onHealth?: () => void;
  onLine?: (line: WrittenLine) => void;
  /** What a hint tells to change; a box's configuration when left out. */
  place?: AllowPlace | undefined;
  /** Keeps what is counted and not yet written, for a process that is killed. */
  pending?: PendingFile | undefined;
};

/**
 * Writes the decision log of a session, one line a decision, numbered without gaps over restarts. While it
 * cannot be written, `failing` says why; nothing may be answered then, because an answer without a line
 * would be a hole in the record. It tries again by itself.
 */
export class DecisionLog {
  failing: string | undefined;
  private readonly file: LogFile;
  readonly place: AllowPlace | undefined;
  private readonly onHealth: () => void;
  private readonly onLine: LogOptions["onLine"];
  private readonly windows = new Map<string, Tally>();
  private readonly traffic = new TrafficWindows();
  private readonly budget = new LineBudget();
  private readonly timer: NodeJS.Timeout;
  private session = "";
  private seq = 0;
  private started = false;
  private readonly pending: PendingFile | undefined;

  constructor(file: LogFile, { onHealth = () => {}, onLine, place, pending }: LogOptions = {}) {
    this.file = file;
    this.pending = pending;
    this.onHealth = onHealth;
    this.onLine = onLine;
    this.place = place;
    this.timer = setInterval(() => this.sweep(Date.now()), SWEEP_MS);
    this.timer.unref();
  }

  /** Begins, or goes on with, the log of a session. */
  start(session: string): void {
    this.session = session;
    this.retry();
  }

  /** Counts one more of a decision; the first of a window is written at once. */
  count(tally: Tally, now: number): void {
    if (now >= tally.until) return this.open(tally, now);
    tally.count += 1;
    this.keepSoon();
  }

  /** The tally for a decision: the open one of the same key, or a new one, not counted yet. */
  tally(key: string, facts: LineFacts): Tally {
    return this.windows.get(key) ?? { key, until: 0, count: 0, kept: undefined, facts };
  }

  /** Adds what a connection carried, now that it is over; returns where it was added, for who adds the same again. */
  addTraffic(key: TrafficKey, carried: { bytesUp: number; bytesDown: number; durationMs: number }, now: number): TrafficWindow {
    const window = this.traffic.add(key, carried, now);
    this.keepSoon();
    return window;
  }

  /** Writes an entry as it is. */
  write(entry: DecisionEntry): void {
    this.append(entry, Date.now());
  }

  /** Closes all windows and the file. */
  close(): void {
    clearInterval(this.timer);
    for (const tally of this.windows.values()) this.closeWindow(tally, Date.now());
    this.windows.clear();
    for (const entry of this.traffic.takeAll()) this.append(entry, Date.now());
    if (this.failing === undefined) this.pending?.clear();
    this.file.close();
  }

  private open(tally: Tally, now: number): void {
    const known = this.windows.get(tally.key);
    if (known !== undefined && known !== tally && now < known.until) {
      known.count += 1;
      return;
    }
    if (known !== undefined) this.closeWindow(known, now);
    tally.until = now + WINDOW_MS;
    tally.count = 0;
    const { action, connection } = tally.facts;
    // A connection that was let through always has its line, however many others there are.
    const isLetThrough = connection !== undefined && action !== "deny";
    if (!this.budget.take(action === "deny" ? "deny" : "allow", now) && !isLetThrough) return;
    // Deleting first makes it the youngest in the order of the map.
    this.windows.delete(tally.key);
    this.windows.set(tally.key, tally);
    this.append({ ...renderLine(tally.facts, this.place), count: 1 }, now);
    const [oldest] = this.windows.values();
    if (this.windows.size > MAX_WINDOWS && oldest !== undefined) this.closeWindow(oldest, now);
  }

  private closeWindow(tally: Tally, now: number): void {
    this.windows.delete(tally.key);
    if (tally.count > 0) this.append({ ...renderLine(tally.facts, this.place), count: tally.count }, now);
    tally.until = 0;
    tally.count = 0;
  }

  private sweep(now: number): void {
    if (this.failing !== undefined) this.retry();
    if (this.failing === undefined) this.restore();
    if (this.failing !== undefined) return;
    for (const tally of this.windows.values()) {
      if (tally.until > now) break;
      this.closeWindow(tally, now);
    }
    for (const entry of this.traffic.takeOver(now)) {
      if (this.budget.take("allow", now)) this.append(entry, now);
    }
    this.keepSoon();
    const dropped = this.budget.takeDropped(now);
    if (dropped === 0) return;
    const detail = `${dropped} lines were left out: too many different names in a short time`;
    this.append({ kind: "event", event: "lines-dropped", detail, added: [], removed: [] }, now);
  }

  private append(entry: DecisionEntry, now: number): void {
    if (this.failing !== undefined) {
      this.budget.drop();
      return;
    }
    const { seq } = this;
    const text = this.render(entry, seq, now);
    this.seq += 1;
    try {
      this.file.append(text);
    } catch (error) {
      return this.fail(error);
    }
    this.onLine?.({ seq, text, entry });
  }

  private render({ kind, ...rest }: DecisionEntry, seq: number, now: number): string {
    return escapeUnseen(JSON.stringify({ kind, time: new Date(now).toISOString(), seq, session: this.session, ...rest }));
  }

  /** A box may end right after this: what is alone is kept at once, of a flood what there is from time to time. */
  private keepSoon(): void {
    if (this.started) this.pending?.keepSoon(() => this.listPending(Date.now()));
  }

  /** Texts are kept, since nearly all are as before; who reads them numbers them. */
  private listPending(now: number): string[] {
    const lines: string[] = [];
    for (const tally of this.windows.values()) {
      const { facts, count } = tally;
      if (lines.length === MAX_KEPT) return lines;
      if (count === 0) continue;
      if (tally.kept?.count !== count) tally.kept = { count, text: this.render({ ...renderLine(facts, this.place), count }, 0, now) };
      lines.push(tally.kept.text);
    }
    for (const window of this.traffic.list()) {
      const { entry } = window;
      if (lines.length === MAX_KEPT) return lines;
      if (window.kept?.count !== entry.flows) window.kept = { count: entry.flows, text: this.render(entry, 0, now) };
      lines.push(window.kept.text);
    }
    return lines;
  }

  /** Writes what a process that was killed had counted. */
  private recover(): void {
    for (const line of this.pending?.take() ?? []) {
      const kept = readNumbered(line);
      if (kept?.session !== this.session) continue;
      this.file.append(escapeUnseen(JSON.stringify({ ...kept, seq: this.seq })));
      this.seq += 1;
    }
    this.pending?.clear();
  }

  private restore(): void {
    try {
      this.file.restore();
    } catch (error) {
      this.fail(error);
    }
  }

  private retry(): void {
    try {
      if (!this.started) {
        this.seq = nextSeq(this.file.readLastLine(), this.session);
        this.recover();
      }
      this.started = true;
      this.file.flush();
      if (this.failing === undefined) return;
      this.failing = undefined;
      this.onHealth();
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    const said = error instanceof Error ? error.message : String(error);
    const news = this.failing === undefined;
    this.failing = `the decision log cannot be written: ${said}`;
    if (news) this.onHealth();
  }
}
