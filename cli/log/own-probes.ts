import type { DecisionRecord } from "../../policy/decision-record.ts";
import type { SessionRecord } from "../session/session-record.ts";

/** What the box itself asks for, to prove that its walls stand: the same as in entrypoint/canary.ts, which the command line does not carry. */
export const PROBED_NAMES: readonly string[] = ["example.com", "example.net", "example.org"];
const PROBED_ADDRESSES: readonly string[] = ["198.51.100.1", "2001:db8::1"];

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

/**
 * Leaves out what a box asked while it started: all before its start event, and the questions by which it
 * proved its walls. The start asks for one foreign name; the gate of a sidecar's agent for all of them.
 * Questions of the agent for the same names stay.
 */
export function dropOwnProbes(records: readonly DecisionRecord[], { topology }: Pick<SessionRecord, "topology">): DecisionRecord[] {
  const start = records.findLastIndex((record) => record.kind === "event" && record.event === "start");
  const later = records.slice(start + 1);
  const rest = countProbes(later, { gate: topology === "sidecar" ? 1 : 0, boot: start === -1 ? 1 : 0 });
  return later.flatMap((record): DecisionRecord[] => {
    if (record.kind === "event") return [record];
    if (record.protocol === "address" && PROBED_ADDRESSES.includes(record.host)) return [];
    const probes = isForeignQuestion(record) ? Math.min(rest.get(record.host) ?? 0, record.count) : 0;
    rest.set(record.host, (rest.get(record.host) ?? 0) - probes);
    return record.count === probes ? [] : [{ ...record, count: record.count - probes }];
  });
}

/** How often each name was asked for by the box itself. The start takes the first one that the policy does not allow. */
function countProbes(records: readonly DecisionRecord[], { gate, boot }: { gate: number; boot: number }): Map<string, number> {
  const first = PROBED_NAMES.find((name) => records.some((record) => record.kind === "decision" && record.host === name && isForeignQuestion(record)));
  return new Map(PROBED_NAMES.map((name) => [name, name === first ? gate + boot : gate]));
}

function isForeignQuestion({ protocol, type, action }: Decided): boolean {
  return protocol === "dns" && type === "A" && action === "deny";
}
