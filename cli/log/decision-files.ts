import { dirname, join } from "node:path";
import { DECISION_LOG_FILE, type DecisionRecord, decisionRecordSchema } from "../../policy/decision-record.ts";
import { PENDING_FILES, readPending } from "../../policy/pending-lines.ts";
import { readPlainFile } from "../workspace/plain-file.ts";

/**
 * What a session decided, in order. `unread` counts lines that are none of ours, and files that could not be read;
 * `missing` those that came before the oldest and were rotated away, or removed; `holes` those between others, less what is counted as unread.
 */
export type DecisionLogContent = { records: DecisionRecord[]; unread: number; missing: number; holes: number };

const OLDER_FILES = 3;
/** A box rotates long before; more is no log of ours. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Where a session's decision log lies. */
export function findDecisionFile(sessionDirectory: string): string {
  return join(sessionDirectory, "log", DECISION_LOG_FILE);
}

/** Reads the decision log of a session; see `readDecisionFiles`. */
export function readDecisions(sessionDirectory: string): DecisionLogContent {
  return readDecisionFiles(findDecisionFile(sessionDirectory));
}

/**
 * Reads a decision log with its rotated files. The newest file is read first: what is
 * rotated meanwhile is met twice, and never missed. The files were written from a box; no link is followed.
 */
export function readDecisionFiles(live: string, { withPending = true }: { withPending?: boolean } = {}): DecisionLogContent {
  const files = [live, ...Array.from({ length: OLDER_FILES }, (_, index) => `${live}.${index + 1}`)];
  const bySeq = new Map<number, DecisionRecord>();
  let unread = 0;
  for (const file of files) {
    const found = readPlainFile(file, MAX_BYTES);
    if ("flaw" in found) {
      if (found.flaw !== "missing") unread += 1;
      continue;
    }
    const text = found.content.toString("utf8");
    // A line that is being written is none yet.
    for (const line of text.slice(0, text.lastIndexOf("\n") + 1).split("\n").slice(0, -1)) {
      const record = parseDecision(line);
      if (record === undefined) unread += 1;
      else if (!bySeq.has(record.seq)) bySeq.set(record.seq, record);
    }
  }
  const records = [...bySeq.values()].toSorted((a, b) => a.seq - b.seq);
  const [first, last] = [records[0]?.seq ?? 0, records.at(-1)?.seq ?? -1];
  const counted = withPending ? readCounted(live, last + 1) : [];
  return { records: [...records, ...counted], unread, missing: first, holes: Math.max(0, last - first + 1 - records.length - unread) };
}

/** What was counted when the log's writer was killed, or is counted by it now; read last, since lines of it may become lines of the log. */
function readCounted(live: string, seq: number): DecisionRecord[] {
  const files = PENDING_FILES.map((name) => readPlainFile(join(dirname(live), name), MAX_BYTES));
  const lines = readPending(files.map((found) => ("flaw" in found ? "" : found.content.toString("utf8"))));
  return lines.flatMap((line) => parseDecision(line) ?? []).map((record, index) => ({ ...record, seq: seq + index }));
}

/** What a reader of a log has to know of what is not in it, a sentence each. */
export function describeGaps({ unread, missing, holes }: Omit<DecisionLogContent, "records">): string[] {
  return [
    ...(missing > 0 ? [`older lines of its log are gone (${missing}): what is told here is not all`] : []),
    ...(holes > 0 ? [`${holes} ${holes === 1 ? "line" : "lines"} of its log ${holes === 1 ? "is" : "are"} gone in between: what is told here is not all`] : []),
    ...(unread > 0 ? [`${unread} ${unread === 1 ? "line of its log was" : "lines of its log were"} not understood`] : []),
  ];
}

/** Parses one line of a decision log; undefined for what is none. */
export function parseDecision(line: string): DecisionRecord | undefined {
  try {
    return decisionRecordSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
