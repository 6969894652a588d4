import { describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../policy/decision-record.ts";
import { parseEntry } from "../../../policy/entry.ts";
import { findSharedStore, SHARED_STORES_DATE } from "../../../policy/shared-stores.ts";
import type { Host } from "../../../policy/host-name.ts";
import { listDefaults, renderSuggestedCommands, renderSuggestedToml, suggestEntries, suggestFixes } from "../../../policy/suggestion.ts";
import { isTelemetryHost, TELEMETRY_HOSTS_DATE } from "../../../policy/telemetry-hosts.ts";

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

function record(host: string, further: Partial<Decided> = {}): DecisionRecord {
  return { kind: "decision", time: "2026-11-21T00:00:00.000Z", seq: 0, session: "s", protocol: "dns", host, port: null, type: "A", addresses: [], action: "allow", reason: "allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1, ...further };
}

const reported = { action: "report", reason: "not_allowed" } as const;
const texts = (records: readonly DecisionRecord[]): readonly string[] => suggestEntries(records).map(({ text }) => text);

const isDefault = (host: Host, port: number): boolean => port === 443 && host.kind === "name";

describe("the list that a session used", () => {
  test("holds each allowed name once, most used first", () => {
    const found = suggestEntries([record("a.com"), record("b.com", { count: 3 }), record("a.com", { count: 7 })]);
    expect(found.map(({ text, count }) => [text, count])).toEqual([
      ["a.com", 8],
      ["b.com", 3],
    ]);
  });

  test("holds what report mode let through, and nothing that was refused", () => {
    expect(texts([record("a.com", { action: "report", reason: "not_allowed" }), record("b.com", { action: "deny", reason: "not_allowed" })])).toEqual(["a.com"]);
  });

  test("takes the ports of the kernel's records", () => {
    expect(texts([record("a.com"), record("a.com", { protocol: "address", port: 8443 }), record("a.com", { protocol: "address", port: 22 })])).toEqual(["a.com:22,8443"]);
  });

  test("leaves out probes, telemetry, dotless names, private addresses, malformed names and events", () => {
    const event: DecisionRecord = { kind: "event", time: "", seq: 1, session: "s", event: "start", detail: "", added: [], removed: [] };
    expect(texts([record("agentbox-wildcard-probe.a.com"), record("o1.ingest.sentry.io"), record("db"), record("10.0.0.1"), record('"a b"'), record("1.0.0.127.in-addr.arpa"), event, record("140.82.112.3", { port: 22 })])).toEqual(["140.82.112.3:22"]);
  });

  test.each<[string, readonly string[], readonly string[]]>([
    ["folds four names of one domain", ["a.x.com", "b.x.com", "c.x.com", "d.x.com"], ["*.x.com"]],
    ["does not fold three", ["a.x.com", "b.x.com", "c.x.com"], ["a.x.com", "b.x.com", "c.x.com"]],
    ["folds below what they have in common", ["a.eu.x.com", "b.eu.x.com", "c.eu.x.com", "d.e.eu.x.com"], ["*.eu.x.com"]],
    ["keeps the domain itself beside the wildcard", ["x.com", "a.x.com", "b.x.com", "c.x.com", "d.x.com"], ["*.x.com", "x.com"]],
    ["keeps a name above the common part within the wildcard", ["a.eu.x.com", "eu.x.com", "b.eu.x.com", "c.eu.x.com"], ["*.x.com"]],
    ["never folds below a public suffix", ["a.co.uk", "b.co.uk", "c.co.uk", "d.co.uk"], ["a.co.uk", "b.co.uk", "c.co.uk", "d.co.uk"]],
    ["never folds pages of strangers", ["a.github.io", "b.github.io", "c.github.io", "d.github.io"], ["a.github.io", "b.github.io", "c.github.io", "d.github.io"]],
    ["never folds blogs of strangers", ["a.blogspot.com", "b.blogspot.com", "c.blogspot.com", "d.blogspot.com"], ["a.blogspot.com", "b.blogspot.com", "c.blogspot.com", "d.blogspot.com"]],
    ["never folds over a shared store", ["a.cloud.google.com", "b.cloud.google.com", "c.cloud.google.com", "d.cloud.google.com"], ["a.cloud.google.com", "b.cloud.google.com", "c.cloud.google.com", "d.cloud.google.com"]],
  ])("%s", (_row, hosts, expected) => {
    expect(texts(hosts.map((host) => record(host, reported)))).toEqual(expected);
  });

  test("does not fold names with different ports", () => {
    const names = ["a.x.com", "b.x.com", "c.x.com"].map((host) => record(host, reported));
    expect(texts([...names, record("d.x.com", { ...reported, port: 8443 })])).toEqual(["a.x.com", "b.x.com", "c.x.com", "d.x.com:8443"]);
  });

  test("does not widen what a rule allows already", () => {
    const names = ["a.x.com", "b.x.com", "c.x.com"].map((host) => record(host, reported));
    expect(texts([...names, record("d.x.com")])).toEqual(["a.x.com", "b.x.com", "c.x.com", "d.x.com"]);
    expect(texts([...names, record("d.x.com", reported)])).toEqual(["*.x.com"]);
  });

  test("counts a packet for the name that led to its address: the one asked for last, else the one that the keeper knew", () => {
    const packet = { ...reported, protocol: "address", port: 8443 } as const;
    const answers = [record("old.com", { addresses: ["140.82.112.3"] }), record("new.com", { addresses: ["140.82.112.3", "140.82.112.4"] })];
    expect(texts([...answers, record("140.82.112.3", packet), record("140.82.112.9", { ...packet, detail: "an address of known.com, other.com; x" }), record("140.82.112.10", packet)])).toEqual(["new.com:8443", "140.82.112.10:8443", "known.com:8443", "old.com"]);
  });

  test("leaves out what is open by default on all the ports that were used, and names it", () => {
    const records = [record("a.com"), record("b.com"), record("b.com", { ...reported, protocol: "address", port: 8443 })];
    expect(suggestEntries(records, isDefault).map(({ text }) => text)).toEqual(["b.com:8443"]);
    expect(listDefaults(records, isDefault)).toEqual(["a.com"]);
  });

  test("consists of entries that the lists accept", () => {
    for (const { text } of suggestEntries([record("a.com", { port: 22 }), record("2606:50c0::1", { port: 22 }), ...["a", "b", "c", "d"].map((label) => record(`${label}.x.com`, { ...reported, port: 8443 }))])) {
      expect([text, parseEntry(text, "list").ok]).toEqual([text, true]);
    }
  });
});

describe("the fix for a failed session", () => {
  const denied = { action: "deny", reason: "not_allowed" } as const;
  const records = [record("a.com", denied), record("a.com", { ...denied, port: 8443, protocol: "address", count: 2 }), record("statsig.anthropic.com", denied), record("evil.org", { action: "deny", reason: "denied" }), record("ok.com")];

  test("names what no rule allowed, without telemetry and without what was blocked on purpose", () => {
    expect(suggestFixes(records).map(({ text, count }) => [text, count])).toEqual([["a.com:8443", 3]]);
  });

  test("is ready to paste as configuration and as commands", () => {
    expect(renderSuggestedToml(suggestFixes(records))).toBe('[network]\nallow_hosts = [\n  "a.com:8443", # 3 times\n]\n');
    expect(renderSuggestedCommands(suggestFixes(records))).toEqual(["agentbox policy allow a.com:8443"]);
  });
});

describe("hosts of a kind", () => {
  test("say when they were last looked at", () => {
    for (const date of [TELEMETRY_HOSTS_DATE, SHARED_STORES_DATE]) expect(date).toMatch(/^20\d\d-[01]\d-[0-3]\d$/);
  });

  test.each([
    ["a collector's domain", "o1.ingest.sentry.io", true],
    ["an agent's own collector", "statsig.anthropic.com", true],
    ["an agent's model", "api.anthropic.com", false],
    ["a name that only says so", "telemetry.evil.org", false],
    ["a name that only ends alike", "notsentry.io", false],
  ])("telemetry: %s", (_row, name, telemetry) => {
    expect(isTelemetryHost(name)).toBe(telemetry);
  });

  test.each([
    ["a bucket", "my-bucket.s3.amazonaws.com", false, "amazonaws.com"],
    ["a page of somebody", "someone.github.io", false, "github.io"],
    ["a name above a store", "googleapis.com", false, undefined],
    ["a wildcard above a store", "googleapis.com", true, "storage.googleapis.com"],
    ["a name that only ends alike", "notgithub.io", false, undefined],
  ])("shared stores: %s", (_row, name, wildcard, store) => {
    expect(findSharedStore(name, wildcard)).toBe(store);
  });
});
