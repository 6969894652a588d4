import { describe, expect, test } from "vitest";
import { dropOwnProbes } from "../../../../cli/log/own-probes.ts";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import { PROBE_DETAIL } from "../../../../policy/probe.ts";

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

let seq = 0;

function asked(host: string, more: Partial<Decided> = {}): Decided {
  seq += 1;
  return {
    kind: "decision", time: "2026-11-21T04:00:00.000Z", seq, session: "s", protocol: "dns", host, port: null, type: "A", addresses: [],
    action: "deny", reason: "not_allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1, ...more,
  };
}

const probe = asked("example.com", { detail: PROBE_DETAIL });
const canary = asked("198.51.100.1", { protocol: "address", port: 9, type: "tcp" });
const start: DecisionRecord = { kind: "event", time: "2026-11-21T04:00:00.000Z", seq: 50, session: "s", event: "start", detail: "", added: [], removed: [] };

describe("what a box asked itself is left out", () => {
  test.each([
    { name: "its probes of names and addresses", records: [probe, canary], left: [] },
    { name: "the name that it tells its proxy, and that name alone", records: [asked("agentbox-probe.example.net", { protocol: "tls-sni", port: 443 }), asked("example.net", { protocol: "tls-sni", port: 443 })], left: ["example.net"] },
    { name: "but not the agent's own question for the same name", records: [probe, asked("example.com"), canary], left: ["example.com"] },
    { name: "and not a question in words of ours by another protocol", records: [asked("203.0.113.7", { protocol: "address", detail: PROBE_DETAIL })], left: ["203.0.113.7"] },
    { name: "everything before the start was over", records: [asked("a.example.com"), probe, start, asked("b.example.com")], left: ["b.example.com"] },
  ] as const)("$name", ({ records, left }) => {
    expect(dropOwnProbes(records).flatMap((record) => (record.kind === "decision" ? [record.host] : []))).toEqual(left);
  });
});
