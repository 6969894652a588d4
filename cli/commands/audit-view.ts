import { quotePath } from "../../policy/parsed.ts";
import type { ChainReport } from "../../sandbox/audit-chain.ts";
import type { AuditEntry } from "../../sandbox/audit-entry.ts";
import type { TaskSummary } from "../../sandbox/task-summary.ts";
import { renderBytes } from "./logs-stats.ts";

/** Paths of one kind that people are shown; programs get all that is listed. */
const MAX_SHOWN = 20;

/** One entry as one line: when, which, of what task, and what it says. */
export function renderAuditEntry(entry: AuditEntry): string {
  return [entry.time, String(entry.seq).padStart(5), entry.task ?? "-", ...describe(entry)].filter((part) => part !== "").join("  ");
}

function describe(entry: AuditEntry): string[] {
  const { kind, of, intent = "", path, asked, destination, size, digest, decision, ruleId, tags = [], refusal, prompt, answer, scope, by, outcome, code } = entry;
  const where = [intent, path === undefined ? "" : quotePath(path), destination === undefined ? "" : `to ${quotePath(destination)}`, asked === undefined ? "" : `asked as ${quotePath(asked)}`];
  const bytes = size === undefined ? "" : `${size} bytes`;
  const rule = ruleId === undefined ? "" : `by ${renderWord(ruleId)}`;
  switch (kind) {
    case "request":
      return ["request ", ...where, bytes, decision ?? "undecided", rule, tags.join(" ")];
    case "outcome":
      return ["outcome ", ...where, outcome ?? "", refusal ?? "", code === undefined ? "" : renderWord(code), rule, bytes, digest === undefined ? "" : `sha256 ${digest}`, `of ${of}`];
    case "confirmation":
      return ["asked   ", ...where, prompt === undefined ? "" : quotePath(prompt), [renderWord(answer ?? ""), scope ?? ""].join(" ").trimEnd(), `by ${renderWord(by ?? "")}`, `of ${of}`];
    case "grant":
    case "revoke":
      return [kind.padEnd(8), ...where, (entry.rights ?? []).map(renderWord).join(" "), entry.expires === undefined ? "" : `until ${renderWord(entry.expires)}`, by === undefined ? "" : `by ${renderWord(by)}`, renderWord(entry.grant ?? "")];
    case "session":
      return ["session ", entry.event ?? "", entry.torn === undefined ? "" : `${entry.torn.bytes} bytes of a torn line are kept in ${renderWord(entry.torn.file)}`];
    case "task":
      return ["task    ", entry.event ?? "", entry.summary === undefined ? "" : renderCounts(entry.summary.counts)];
  }
}

function renderCounts(counts: TaskSummary["counts"]): string {
  return Object.entries(counts).filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`).join(", ");
}

/** Most words are plain; one that could be read as something else is quoted. */
function renderWord(text: string): string {
  return /^[\w.:@/-]+$/.test(text) ? text : quotePath(text);
}

/** What a log proves, as one line. */
export function renderReport({ entries, head, time, broken }: ChainReport): string {
  const held = entries === 0 ? "no entry holds" : `the chain holds up to entry ${entries}, ${time}, head ${head}`;
  return broken === undefined ? held : `line ${broken.line}: ${broken.kind}: ${broken.detail}; ${held}`;
}

/** A task as a paragraph. */
export function renderTaskSummary(summary: TaskSummary): string[] {
  const { taskId, started, ended, counts, bytesRead, bytesWritten, tags, leftOut } = summary;
  const rows: [string, number, readonly string[], string][] = [
    ["read", counts.read, summary.read.map(quotePath), `, ${renderBytes(bytesRead)}`],
    ["listed", counts.listed, summary.listed.map(quotePath), ""],
    ["written", counts.written, summary.written.map(quotePath), ""],
    ["created", counts.created, summary.created.map(quotePath), ""],
    ["deleted", counts.deleted, summary.deleted.map(quotePath), ""],
    ["moved", counts.moved, summary.moved.map(({ from, to }) => `${quotePath(from)} to ${quotePath(to)}`), ""],
    ["asked", counts.asked, summary.asked.map(({ path, answer }) => `${quotePath(path)}: ${renderWord(answer)}`), ""],
    ["refused", counts.refused, summary.refused.map(({ path, reason, ruleId }) => `${quotePath(path)}: ${renderWord(reason)}${ruleId === null ? "" : ` by ${renderWord(ruleId)}`}`), ""],
    ["failed", counts.failed, summary.failed.map(({ path, intent, code }) => `${intent} ${quotePath(path)}: ${renderWord(code)}`), ""],
    ["unknown", counts.unknown, summary.unknown.map(({ path, intent }) => `${intent} ${quotePath(path)}`), ""],
  ];
  return [
    `task ${taskId}, ${started} to ${ended ?? "no end that is known"}`,
    ...rows.flatMap(([name, count, shown, more]) => (count === 0 ? [] : [`  ${name} ${count}${more}`, ...shown.slice(0, MAX_SHOWN).map((text) => `    ${text}`), ...(shown.length > MAX_SHOWN ? [`    and ${shown.length - MAX_SHOWN} more: --json`] : [])])),
    ...(bytesWritten > 0 ? [`  bytes written ${renderBytes(bytesWritten)}`] : []),
    ...(tags.length > 0 ? [`  risks ${tags.join(", ")}`] : []),
    ...(leftOut > 0 ? [`  ${leftOut} operations are counted and not listed`] : []),
  ];
}
