import { describe, expect, test } from "vitest";
import { parseAddress, parseRange, type Address, type Range } from "../../../policy/address.ts";
import { decide } from "../../../policy/decide.ts";
import { buildEffectiveList } from "../../../policy/effective-list.ts";
import { buildPolicy, renderRule, type Policy } from "../../../policy/policy.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";

function address(text: string): Address {
  const result = parseAddress(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

function range(text: string): Range {
  const result = parseRange(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

function policyOf(allow: readonly string[], block: readonly string[] = [], allowPrivate: readonly Range[] = []): Policy {
  const list = buildEffectiveList({
    sources: [{ label: "allow_hosts", surface: "list", words: allow.map((text) => ({ text })) }],
    blocks: [{ label: "block_hosts", words: block.map((text) => ({ text })) }],
    critical: [],
    isPublicSuffix,
  });
  return buildPolicy({ blocks: list.blocks, list: list.entries, allowPrivate });
}

describe("decide", () => {
  const policy = policyOf(["github.com", "github.com:22", "*.openai.com", "10.1.2.3:5432", "db.example.com:443,5432"], ["chat.openai.com", "api.*.org", "203.0.113.0/24"]);

  const rows: readonly [row: string, host: string, port: number | undefined, to: string | undefined, reason: string, rule: string | undefined][] = [
    ["allows a listed name on its port", "github.com", 443, undefined, "allowed", "allow github.com:22,443"],
    ["allows it spelt otherwise", " GitHub.COM. ", 443, undefined, "allowed", "allow github.com:22,443"],
    ["does not allow it on other ports", "github.com", 80, undefined, "not_allowed", undefined],
    ["does not allow other names", "example.org", 443, undefined, "not_allowed", undefined],
    ["denies a blocked name below an allowed wildcard", "chat.openai.com", 443, undefined, "denied", "deny chat.openai.com"],
    ["allows the rest of that wildcard", "api.openai.com", 443, undefined, "allowed", "allow **.openai.com:443"],
    ["denies by a glob", "api.x.org", 443, undefined, "denied", "deny api.*.org"],
    ["denies a malformed host", "git hub.com", 443, undefined, "denied", undefined],
    ["denies a host with NUL", "github.com\0.evil.org", 443, undefined, "denied", undefined],
    ["denies a malformed port", "github.com", 0, undefined, "denied", undefined],
    ["lets a name be resolved when some port of it is open", "db.example.com", undefined, undefined, "allowed", "allow db.example.com:443,5432"],
    ["lets no blocked name be resolved", "chat.openai.com", undefined, undefined, "denied", "deny chat.openai.com"],
    ["lets no other name be resolved", "example.org", undefined, undefined, "not_allowed", undefined],
    ["allows a name that leads to a public address", "github.com", 443, "140.82.112.3", "allowed", "allow github.com:22,443"],
    ["refuses a name that leads to loopback", "github.com", 443, "127.0.0.1", "not_allowed_local", "allow github.com:22,443"],
    ["refuses a name that leads to metadata", "github.com", 443, "169.254.169.254", "not_allowed_local", "allow github.com:22,443"],
    ["refuses a name that leads to loopback inside NAT64", "github.com", 443, "64:ff9b::7f00:1", "not_allowed_local", "allow github.com:22,443"],
    ["allows a private literal that is listed", "10.1.2.3", 5432, undefined, "allowed", "allow 10.1.2.3:5432"],
    ["allows a name that leads to that literal on its port", "db.example.com", 5432, "10.1.2.3", "allowed", "allow db.example.com:443,5432"],
    ["refuses a name that leads to that literal on another port", "db.example.com", 443, "10.1.2.3", "not_allowed_local", "allow db.example.com:443,5432"],
    ["refuses other literals", "10.1.2.4", 5432, undefined, "not_allowed", undefined],
    ["refuses a public literal although names are allowed", "140.82.112.3", 443, undefined, "not_allowed", undefined],
    ["denies a name that leads to a blocked address", "github.com", 443, "203.0.113.9", "denied", "deny 203.0.113.0/24"],
  ];
  test.each(rows)("%s", (_row, host, port, to, reason, rule) => {
    const decision = decide(policy, { host, port, address: to === undefined ? undefined : address(to) });
    expect(decision.reason).toBe(reason);
    expect(decision.action).toBe(reason === "allowed" ? "allow" : "deny");
    expect(decision.rule && renderRule(decision.rule)).toBe(rule);
  });

  test("tells which ports of the host are open", () => {
    const { nearest } = decide(policy, { host: "github.com", port: 80 });
    expect(nearest && renderRule(nearest)).toBe("allow github.com:22,443");
  });

  test("tells where the rule comes from", () => {
    expect(decide(policy, { host: "github.com", port: 443 }).rule?.origins).toEqual([
      { label: "allow_hosts", text: "github.com" },
      { label: "allow_hosts", text: "github.com:22" },
    ]);
  });

  test("opens exactly the private blocks of allowPrivate", () => {
    const lan = policyOf(["nas.example.com"], [], [range("192.168.7.0/24")]);
    const reason = (to: string): string => decide(lan, { host: "nas.example.com", port: 443, address: address(to) }).reason;
    expect([reason("192.168.7.9"), reason("192.168.8.9"), reason("127.0.0.1")]).toEqual(["allowed", "not_allowed_local", "not_allowed_local"]);
  });

  test("a wildcard over everything matches names and no literal", () => {
    const all = buildPolicy({ rules: [{ action: "allow", match: { kind: "pattern", pattern: { kind: "all" } }, ports: "any", text: "*", origins: [] }] });
    expect(decide(all, { host: "anything.example", port: 443 }).reason).toBe("allowed");
    for (const host of ["127.0.0.1", "169.254.169.254", "8.8.8.8", "[::1]"]) expect(decide(all, { host, port: 443 }).reason).toBe("not_allowed");
    expect(decide(all, { host: "localhost", port: 443, address: address("127.0.0.1") }).reason).toBe("not_allowed_local");
  });

  test("ordered rules stand before lists and after blocks", () => {
    const deny = { action: "deny" as const, match: { kind: "pattern" as const, pattern: { kind: "exact" as const, name: "github.com" } }, ports: "any" as const, text: "github.com", origins: [] };
    const { entries, blocks } = buildEffectiveList({ sources: [{ label: "l", surface: "list", words: [{ text: "github.com" }] }], critical: [], isPublicSuffix });
    const decision = decide(buildPolicy({ rules: [deny], list: entries, blocks }), { host: "github.com", port: 443 });
    expect([decision.reason, decision.rule?.tier]).toEqual(["denied", "rules"]);
  });
});
