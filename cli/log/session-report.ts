import type { DecisionRecord } from "../../policy/decision-record.ts";
import type { RecordedSession } from "../session/session-record.ts";
import { readDecisions } from "./decision-files.ts";
import { dropOwnProbes } from "./own-probes.ts";
import { collectRefusals, type Refusal } from "./refusals.ts";

/** A report shall be read, not scrolled. */
const MAX_HOSTS = 4;

/** Reads the log of a session that failed and tells what it was refused; no lines where there is nothing to tell. */
export function reportSession({ directory }: Pick<RecordedSession, "directory">): string[] {
  return renderSessionReport(dropOwnProbes(readDecisions(directory).records));
}

/**
 * Tells after a session that failed what it was refused, with what to paste; no lines where it was refused
 * nothing but telemetry. At most 8 lines, most refused first.
 */
export function renderSessionReport(records: readonly DecisionRecord[]): string[] {
  const refused = collectRefusals(records, { all: false }).refusals.filter(({ reported }) => !reported);
  const hosts = [...Map.groupBy(refused, ({ host, port }) => (port === null ? host : `${host}:${port}`))].map(([name, group]) => ({ name, group, count: group.reduce((sum, { count }) => sum + count, 0) }));
  if (hosts.length === 0) return [];
  const shown = hosts.toSorted((a, b) => b.count - a.count).slice(0, MAX_HOSTS);
  const rest = hosts.length - shown.length;
  const words = new Set(shown.flatMap(({ group }) => group.flatMap(({ command }) => command?.slice("agentbox policy allow ".length) ?? [])));
  const width = Math.max(...shown.map(({ name }) => name.length));
  return [
    "This session was refused:",
    ...shown.map(({ name, group, count }) => `  ${name.padEnd(width)}  ${describe(group, count)}`),
    ...(rest > 0 ? [`  and ${rest} more: agentbox blocked`] : []),
    ...(words.size > 0 ? [`If it needs ${words.size === 1 ? "it" : "them"}: agentbox policy allow --always ${[...words].join(" ")}`] : []),
    ...(rest > 0 ? [] : ["All of it: agentbox blocked"]),
  ];
}

function describe(group: readonly Refusal[], count: number): string {
  const reasons = [...new Set(group.map(({ reason }) => reason))].join(", ");
  return `${count === 1 ? "once" : `${count} times`}, ${reasons}`;
}
