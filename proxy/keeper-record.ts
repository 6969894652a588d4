import { type DecisionEntry, decisionRecordSchema } from "../policy/decision-record.ts";

/** Reads what the keeper wants in the log; undefined for what is no entry. */
export function readKeeperEntry(entry: Readonly<Record<string, unknown>>): DecisionEntry | undefined {
  // The keeper leaves out what the log adds; with stand-ins the schema of whole records judges it.
  const record = decisionRecordSchema.safeParse({ ...entry, time: "", seq: 0, session: "" });
  if (!record.success) return undefined;
  const { time: _time, seq: _seq, session: _session, ...rest } = record.data;
  return rest;
}
