import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rangeContains } from "../../../policy/address.ts";
import { matchesGlob, parseBlock } from "../../../policy/block.ts";
import { decide } from "../../../policy/decide.ts";
import { parseTarget } from "../../../policy/entry.ts";
import { parseHost, type Host } from "../../../policy/host-name.ts";
import { buildPolicy, type PolicyRule, type RuleInput } from "../../../policy/policy.ts";
import type { Steps } from "../../../policy/rule-slot.ts";

function rule(action: "allow" | "deny", text: string, ports: RuleInput["ports"]): RuleInput {
  const target = text.startsWith("glob:") ? parseBlock(text.slice(5)) : parseTarget(text, "rules");
  if (!target.ok) throw new Error(target.complaint.what);
  return { action, match: target.value, ports, text, origins: [] };
}

function host(text: string): Host {
  const result = parseHost(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

/** First match by trying every rule in turn, with its own idea of what each pattern means. */
function naiveFind(rules: readonly PolicyRule[], asked: Host, port: number | undefined): PolicyRule | undefined {
  return rules.find((candidate) => {
    const { match, ports, action } = candidate;
    if (!(ports === "any" || (port === undefined ? action === "allow" : ports.includes(port)))) return false;
    if (match.kind === "glob") return match.glob === "*" || (asked.kind === "name" && matchesGlob(match.glob, asked.name));
    if (match.kind === "range") return asked.kind === "address" && rangeContains(match.range, asked.address);
    if (asked.kind === "address") return false;
    const labels = asked.name.split(".");
    const tails = labels.map((_label, index) => labels.slice(index).join("."));
    const { pattern } = match;
    if (pattern.kind === "all") return true;
    if (pattern.kind === "exact") return tails[0] === pattern.name;
    return (pattern.kind === "apex-and-below" ? tails : tails.slice(1)).includes(pattern.suffix);
  });
}

// A small alphabet, so that rules and questions often meet.
const label = fc.constantFrom("a", "b", "com");
const name = fc.array(label, { minLength: 2, maxLength: 5 }).map((labels) => labels.join("."));
const address = fc.constantFrom("11.0.2.1", "11.0.2.200", "11.1.0.7", "2001:db8::1", "2001:db8:1::1");
const range = fc.constantFrom("11.0.2.0/24", "11.0.2.0/25", "11.0.2.1", "11.0.0.0/16", "2001:db8::/32", "2001:db8::1");
const text = fc.oneof({ weight: 6, arbitrary: fc.tuple(fc.constantFrom("", "*.", "**."), name).map((parts) => parts.join("")) }, { weight: 2, arbitrary: range }, fc.constant("*"), fc.constantFrom("glob:a*com", "glob:*b.a*", "glob:11.0.2.*", "glob:*"));
const port = fc.constantFrom(22, 80, 443);
const ports = fc.oneof(fc.constant<"any">("any"), fc.uniqueArray(port, { minLength: 1, maxLength: 2 }));
const rules = fc.array(fc.tuple(fc.constantFrom<"allow" | "deny">("allow", "deny"), text, ports).map((parts) => rule(...parts)), { maxLength: 30 });

describe("the lookup", () => {
  test("equals trying every rule in turn", () => {
    fc.assert(
      fc.property(rules, fc.oneof(name, address), fc.oneof(port, fc.constant(undefined)), (list, asked, onPort) => {
        const policy = buildPolicy({ rules: list });
        expect(policy.find(host(asked), onPort)).toBe(naiveFind(policy.rules, host(asked), onPort));
      }),
      { numRuns: 5000 },
    );
  });

  test("equals trying every rule in turn where many ranges overlap", () => {
    const nested = fc.constantFrom("11.0.0.0/8", "11.0.0.0/16", "11.1.0.0/16", "11.0.2.0/24", "11.0.3.0/24", "11.0.2.1", "11.0.3.1", "2a00::/19", "2a00:1::/32", "2a00:2::/32", "2a00:1::1");
    const literal = fc.constantFrom("11.0.2.1", "11.0.3.1", "11.1.2.1", "11.0.9.9", "2a00:1::1", "2a00:2::1");
    const list = fc.array(fc.tuple(fc.constantFrom<"allow" | "deny">("allow", "deny"), nested, ports).map((parts) => rule(...parts)), { maxLength: 12 });
    fc.assert(
      fc.property(list, literal, fc.oneof(port, fc.constant(undefined)), (some, asked, onPort) => {
        const policy = buildPolicy({ rules: some });
        expect(policy.find(host(asked), onPort)).toBe(naiveFind(policy.rules, host(asked), onPort));
      }),
      { numRuns: 3000 },
    );
  });

  test("takes the same number of steps for 10 rules and for 100,000", () => {
    const counts = [10, 1000, 100_000].map((size) => {
      const list = Array.from({ length: size }, (_, index) => rule("allow", index % 3 === 0 ? `**.h${index}.example.com` : `h${index}.example.com`, [443]));
      const policy = buildPolicy({ rules: list });
      const known = { count: 0 };
      const unknown = { count: 0 };
      policy.find(host("x.h3.example.com"), 443, known);
      policy.find(host("nowhere.example.com"), 443, unknown);
      return [known.count, unknown.count];
    });
    expect(new Set(counts.map(String)).size).toBe(1);
    expect(counts[0]?.every((count) => count > 0 && count <= 5)).toBe(true);
  });

  test("takes at most one step for each prefix length, however many ranges there are", () => {
    const list = Array.from({ length: 20_000 }, (_, index) => rule("allow", `11.${index >> 8}.${index & 255}.0/24`, [443]));
    const steps: Steps = { count: 0 };
    buildPolicy({ rules: list }).find(host("11.5.5.5"), 443, steps);
    expect(steps.count).toBe(1);
  });

  test("never matches a hostile spelling of another name", () => {
    const policy = buildPolicy({ rules: [rule("allow", "**.example.com", "any"), rule("allow", "api.service.io", "any"), rule("allow", "192.0.2.1", "any")] });
    const glue = fc.constantFrom("", ".", "-", "\0", "%00", "%2e", "。", "@", "/", "\\", "#", "?", ":443", " ", "\u00ad", "x", "evil.org", "*", "..", "[", "]", "\r\n", "0x", "0");
    const hostile = fc.tuple(glue, fc.constantFrom("example.com", "api.service.io", "192.0.2.1", "EXAMPLE.com"), glue, fc.constantFrom("", "evil.org", ".evil.org", "example.com", "1")).map((parts) => parts.join(""));
    fc.assert(
      fc.property(hostile, (asked) => {
        const { action, host: canonical } = decide(policy, { host: asked, port: 443 });
        const truly = /^(?:(?:[a-z0-9_-]+\.)*example\.com|api\.service\.io|192\.0\.2\.1)$/.test(canonical);
        return action === "deny" || (truly && !asked.endsWith("evil.org"));
      }),
      { numRuns: 5000 },
    );
    // The positive control: the plain spelling is let through.
    expect(decide(policy, { host: "a.example.com", port: 443 }).action).toBe("allow");
  });
});
