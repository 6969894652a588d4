import type { DecisionRecord } from "../../policy/decision-record.ts";
import { ADDRESS_PROBES, NAME_PROBES, nameWebProbe, PROBE_DETAIL } from "../../policy/probe.ts";

/** Leaves out what a box asked itself: all that came before it was ready, and the probes by which it proves its walls. */
export function dropOwnProbes(records: readonly DecisionRecord[]): DecisionRecord[] {
  const start = records.findLastIndex((record) => record.kind === "event" && record.event === "start");
  return records.slice(start + 1).filter((record) => record.kind !== "decision" || !isProbe(record));
}

function isProbe({ protocol, host, detail }: Extract<DecisionRecord, { kind: "decision" }>): boolean {
  if (protocol === "tls-sni") return NAME_PROBES.some((name) => nameWebProbe(name) === host);
  return protocol === "address" ? ADDRESS_PROBES.some((address) => address === host) : detail === PROBE_DETAIL;
}
