import { type AuditEntry, NO_PREVIOUS, parseEntry } from "./audit-entry.ts";
import type { AuditLine } from "./audit-reader.ts";

/** What is wrong at a line; from there on nothing is proven. `line` is from 1. */
type ChainBreak = {
  line: number;
  kind: "changed" | "removed" | "inserted" | "reordered" | "cut-off" | "torn";
  detail: string;
};

/** What a log proves of itself. */
export type ChainReport = {
  /** Entries from the first on that follow each other; as many lines. */
  entries: number;
  session: string | undefined;
  /** Hash and time of the last of them. */
  head: string | undefined;
  time: string | undefined;
  /** Its last entry says that the session ended; otherwise it runs, was killed, or entries were cut off. */
  closed: boolean;
  /** Bytes of lines that killed processes cut short. */
  torn: number;
  broken: ChainBreak | undefined;
};

/**
 * Follows the chain of a log from its first line. It finds what was changed, removed, inserted or exchanged by
 * somebody who does not make the rest of the chain anew, and a line that was cut short. Entries that are missing
 * at the end, and a chain that was made anew, are found by `head` only: a hash that was noted elsewhere, which
 * has to be that of an entry.
 */
export function verifyChain(lines: Iterable<AuditLine>, { head }: { head?: string | undefined } = {}): ChainReport {
  const iterator = lines[Symbol.iterator]();
  try {
    return followChain(iterator, head);
  } finally {
    // A reader that stopped early still holds its file.
    iterator.return?.();
  }
}

function followChain(iterator: Iterator<AuditLine>, head: string | undefined): ChainReport {
  const report: ChainReport = { entries: 0, session: undefined, head: undefined, time: undefined, closed: false, torn: 0, broken: undefined };
  let found = head === undefined;
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    const line = next.value;
    const entry = line.whole ? parseEntry(line.text) : undefined;
    if (entry === undefined || !follows(entry, report)) {
      report.broken = line.whole ? explainBreak({ line, entry, report, rest: { [Symbol.iterator]: () => iterator } }) : { line: line.number, kind: "torn", detail: "the last line was not written whole" };
      return report;
    }
    report.entries += 1;
    report.session = entry.session;
    report.head = entry.hash;
    report.time = entry.time;
    report.closed = entry.event === "closed";
    report.torn += entry.torn?.bytes ?? 0;
    found ||= entry.hash === head;
  }
  if (report.entries === 0) report.broken = { line: 1, kind: "cut-off", detail: "the log is empty, and holds not even the beginning of its session" };
  else if (!found) report.broken = { line: report.entries + 1, kind: "cut-off", detail: "no entry has the hash that was noted: entries behind the last were removed, or the whole log was written anew" };
  return report;
}

function follows(entry: AuditEntry, { entries, head, session }: ChainReport): boolean {
  if (entries === 0) return entry.seq === 1 && entry.prev === NO_PREVIOUS && entry.event === "opened";
  return entry.seq === entries + 1 && entry.prev === head && entry.session === session;
}

type Break = { line: AuditLine; entry: AuditEntry | undefined; report: ChainReport; rest: Iterable<AuditLine> };

/** Names what was done to the log by what still comes; where several things were done, the first. */
function explainBreak({ line, entry, report, rest }: Break): ChainBreak {
  const { number } = line;
  const wanted = report.entries + 1;
  const { successor, again } = findLater(line, report, rest);
  if (entry === undefined && successor === undefined) return { line: number, kind: "changed", detail: "the line is not what was written: its hash is not its own" };
  if (entry === undefined) return { line: number, kind: "inserted", detail: `the line is no entry of this log; entry ${wanted} comes in line ${successor}` };
  if (entry.seq < wanted) return { line: number, kind: "inserted", detail: `entry ${entry.seq} comes again` };
  if (successor !== undefined && (again || entry.seq === wanted)) return { line: number, kind: "inserted", detail: `entry ${wanted} comes in line ${successor}` };
  if (successor !== undefined) return { line: number, kind: "reordered", detail: `entry ${entry.seq} comes before entry ${wanted}, which is in line ${successor}` };
  if (entry.seq > wanted) return { line: number, kind: "removed", detail: entry.seq === wanted + 1 ? `entry ${wanted} is missing` : `entries ${wanted} to ${entry.seq - 1} are missing` };
  return { line: number, kind: "changed", detail: wanted === 1 ? "the line is not the beginning of a session" : `the entry does not follow the one in line ${number - 1}: one of them was written anew` };
}

/** The line of the entry that belongs here, and whether the line that is here comes again. */
function findLater(here: AuditLine, report: ChainReport, rest: Iterable<AuditLine>): { successor: number | undefined; again: boolean } {
  let successor: number | undefined;
  let again = false;
  for (const { number, text, whole } of rest) {
    again ||= text === here.text;
    if (successor !== undefined || !whole) continue;
    const entry = parseEntry(text);
    if (entry !== undefined && follows(entry, report)) successor = number;
  }
  return { successor, again };
}
