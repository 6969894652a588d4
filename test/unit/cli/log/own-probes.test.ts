import { describe, expect, test } from "vitest";
import { dropOwnProbes, PROBED_NAMES } from "../../../../cli/log/own-probes.ts";
import { FOREIGN_NAMES } from "../../../../entrypoint/canary.ts";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

let seq = 0;

function asked(host: string, more: Partial<Decided> = {}): Decided {
  seq += 1;
  return {
    kind: "decision", time: "2026-11-21T04:00:00.000Z", seq, session: "s", protocol: "dns", host, port: null, type: "A", addresses: [],
    action: "deny", reason: "not_allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1, ...more,
  };
}

function hostsOf(records: readonly DecisionRecord[], topology: "container" | "sidecar"): string[] {
  return dropOwnProbes(records, { topology }).flatMap((record) => (record.kind === "decision" ? [`${record.host} ${record.count}`] : []));
}

const canary = asked("198.51.100.1", { protocol: "address", port: 9, type: "tcp" });
const start: DecisionRecord = { kind: "event", time: "2026-11-21T04:00:00.000Z", seq: 50, session: "s", event: "start", detail: "", added: [], removed: [] };

test("the names are those that the box asks for", () => {
  expect(PROBED_NAMES).toEqual(FOREIGN_NAMES);
});

describe("what a box asked itself is left out", () => {
  test.each([
    { name: "the one question of a start, and the canary", records: [asked("example.com"), canary], topology: "container", left: [] },
    { name: "the agent's own question for the same name stays", records: [asked("example.com"), asked("example.com", { type: "AAAA" }), asked("example.com", { count: 2 })], topology: "container", left: ["example.com 1", "example.com 2"] },
    { name: "a name that the start did not ask for stays", records: [asked("example.com"), asked("example.org")], topology: "container", left: ["example.org 1"] },
    { name: "the questions of start and gate, counted in one line", records: [asked("example.com"), asked("example.net"), asked("example.org"), asked("example.com")], topology: "sidecar", left: [] },
    { name: "the first name is allowed by the policy, so the start took the second", records: [asked("example.com", { action: "allow", reason: "allowed" }), asked("example.net")], topology: "container", left: ["example.com 1"] },
    { name: "everything before the start event", records: [asked("a.example.com"), asked("example.com"), start, asked("example.com"), asked("b.example.com")], topology: "container", left: ["example.com 1", "b.example.com 1"] },
  ] as const)("$name", ({ records, topology, left }) => {
    expect(hostsOf(records, topology)).toEqual(left);
  });
});
