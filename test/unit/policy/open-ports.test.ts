import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressFromValue, parseRange, rangeContains, rangesOverlap, type Address } from "../../../policy/address.ts";
import { parseBlock } from "../../../policy/block.ts";
import { decide } from "../../../policy/decide.ts";
import { parseTarget } from "../../../policy/entry.ts";
import { parseHost, type Host } from "../../../policy/host-name.ts";
import { openPorts, openRanges } from "../../../policy/open-ports.ts";
import { buildPolicy, type RuleInput } from "../../../policy/policy.ts";

function rule(action: "allow" | "deny", text: string, ports: RuleInput["ports"]): RuleInput {
  const target = text.includes("*") && !/^\*\*?\../.test(text) ? parseBlock(text) : parseTarget(text, "rules");
  if (!target.ok) throw new Error(target.complaint.what);
  return { action, match: target.value, ports, text, origins: [] };
}

function host(text: string): Host {
  const result = parseHost(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

const PORTS = [22, 80, 443, 8443];
const port = fc.constantFrom(...PORTS);
const somePorts = fc.uniqueArray(port, { minLength: 1, maxLength: 3 });
const denyPorts = fc.oneof(fc.constant<"any">("any"), somePorts);
const name = fc.array(fc.constantFrom("a", "b", "com"), { minLength: 2, maxLength: 4 }).map((labels) => labels.join("."));
const namePattern = fc.tuple(fc.constantFrom("", "*.", "**."), name).map((parts) => parts.join(""));
const block = fc.constantFrom("11.0.0.0/8", "11.0.0.0/24", "11.0.0.0/25", "11.0.0.128/25", "11.0.0.7", "11.0.0.8/29", "11.0.1.0/24", "2a00::/32", "2a00::/126", "2a00::1", "2a00::2/127");
const literal = fc.constantFrom("11.0.0.0", "11.0.0.7", "11.0.0.9", "11.0.0.200", "11.0.1.1", "11.9.9.9", "2a00::", "2a00::1", "2a00::2", "2a00::4", "2a00:1::");
const glob = fc.constantFrom("a*b.com", "*b.a*", "*");
const target = fc.oneof({ weight: 5, arbitrary: namePattern }, { weight: 5, arbitrary: block });
const allowRule = fc.tuple(target, somePorts).map(([text, ports]) => rule("allow", text, ports));
const denyRule = fc.tuple(fc.oneof({ weight: 8, arbitrary: target }, { weight: 1, arbitrary: glob }), denyPorts).map(([text, ports]) => rule("deny", text, ports));
const rules = fc.array(fc.oneof({ weight: 3, arbitrary: allowRule }, { weight: 2, arbitrary: denyRule }), { maxLength: 20 });

describe("openPorts", () => {
  test("equals trying every port", () => {
    fc.assert(
      fc.property(rules, fc.oneof(name, literal), (list, asked) => {
        const policy = buildPolicy({ rules: list });
        expect(openPorts(policy, host(asked))).toEqual(PORTS.filter((each) => policy.find(host(asked), each)?.action === "allow"));
      }),
      { numRuns: 4000 },
    );
  });

  test("takes the same number of steps for 10 rules and for 100,000, even when each has a port of its own", () => {
    const counts = [10, 1000, 100_000].map((size) => {
      const list = Array.from({ length: size }, (_, index) => rule("allow", `**.h${index}.example.com`, [443, 1000 + (index % 60_000)]));
      const steps = { count: 0 };
      expect(openPorts(buildPolicy({ rules: list }), host("x.h3.example.com"), steps)).toEqual([443, 1003]);
      return steps.count;
    });
    expect(new Set(counts).size).toBe(1);
    expect(counts[0]).toBeLessThanOrEqual(15);
  });
});

describe("decide without a port", () => {
  test("lets a name be answered exactly when some port of it is open", () => {
    fc.assert(
      fc.property(rules, name, (list, asked) => {
        const policy = buildPolicy({ rules: list });
        expect(decide(policy, { host: asked }).action === "allow").toBe(openPorts(policy, host(asked)).length > 0);
      }),
      { numRuns: 4000 },
    );
  });

  test("lets an address of it through exactly when some port leads there", () => {
    const special = fc.constantFrom("10.0.0.1", "127.0.0.1", "192.168.1.1");
    const privates = fc.constantFrom("10.0.0.1:22", "192.168.0.0/16:443", "127.0.0.1:8443").map((text) => rule("allow", text.slice(0, text.lastIndexOf(":")), [Number(text.slice(text.lastIndexOf(":") + 1))]));
    const mixed = fc.array(fc.oneof({ weight: 4, arbitrary: allowRule }, { weight: 2, arbitrary: denyRule }, { weight: 1, arbitrary: privates }), { maxLength: 12 });
    fc.assert(
      fc.property(mixed, name, fc.oneof(literal, special), fc.option(port), (list, asked, text, privatePort) => {
        const to = host(text);
        if (to.kind !== "address") throw new Error(text);
        const privateHosts = privatePort === null ? [] : [{ name: asked, ports: [privatePort], text: asked, origins: [] }];
        const policy = buildPolicy({ rules: list, privateHosts });
        const onSome = PORTS.some((each) => decide(policy, { host: asked, port: each, address: to.address }).action === "allow");
        expect(decide(policy, { host: asked, address: to.address }).action === "allow").toBe(onSome);
      }),
      { numRuns: 4000 },
    );
  });

  const blocked = buildPolicy({ rules: [rule("deny", "203.0.114.0/24", "any"), rule("allow", "a.com", [443])] });
  test.each([
    ["an address inside a denied block is denied", "203.0.114.9", "denied"],
    ["a private address is refused", "10.0.0.1", "not_allowed_local"],
    ["another public address is allowed", "203.0.115.9", "allowed"],
  ])("%s", (_row, text, reason) => {
    const to = host(text);
    expect(to.kind === "address" && decide(blocked, { host: "a.com", address: to.address }).reason).toBe(reason);
  });
});

describe("openRanges", () => {
  const around = fc.constantFrom(...["11.0.0.0", "11.0.0.128", "11.0.1.0", "11.1.0.0", "2a00::", "2a00:1::"].map(host)).chain((each) =>
    fc.integer({ min: -9, max: 12 }).map((offset): Address => {
      if (each.kind !== "address") throw new Error("a name");
      return addressFromValue(each.address.family, each.address.value + BigInt(offset));
    }),
  );

  test("holds exactly the addresses that decide lets through by literal", () => {
    fc.assert(
      fc.property(rules, around, port, (list, address, onPort) => {
        const policy = buildPolicy({ rules: list });
        const open = openRanges(policy).some((each) => each.port === onPort && rangeContains(each.range, address));
        expect(open).toBe(decide(policy, { host: { kind: "address", address }, port: onPort }).action === "allow");
      }),
      { numRuns: 6000 },
    );
  });

  test("never overlaps inside a port", () => {
    fc.assert(
      fc.property(rules, (list) => {
        const open = openRanges(buildPolicy({ rules: list }));
        const clash = open.some((a, index) => open.slice(index + 1).some((b) => a.port === b.port && rangesOverlap(a.range, b.range)));
        expect(clash).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  test("leaves blocks as they were written where nothing denies a part", () => {
    const policy = buildPolicy({ rules: [rule("allow", "11.0.0.0/24", [443]), rule("allow", "11.0.1.0/24", [443]), rule("allow", "11.0.0.7", [443, 22])] });
    expect(openRanges(policy).map(({ range, port: each }) => `${range.text} ${each}`)).toEqual(["11.0.0.7 22", "11.0.0.0/24 443", "11.0.1.0/24 443"]);
  });

  test("cuts a denied part out and nothing else", () => {
    const policy = buildPolicy({ rules: [rule("deny", "11.0.0.6/31", "any"), rule("allow", "11.0.0.0/29", [443])] });
    expect(openRanges(policy).map(({ range }) => range.text)).toEqual(["11.0.0.0/30", "11.0.0.4/31"]);
  });

  test("copes with many blocks that lie in one another", () => {
    const list = Array.from({ length: 20_000 }, (_, index) => rule(index % 7 === 0 ? "deny" : "allow", `11.${index >> 8}.${index & 255}.0/24`, [443]));
    const open = openRanges(buildPolicy({ rules: [...list, rule("allow", "11.0.0.0/8", [443])] }));
    const denied = parseRange("11.0.7.0/24");
    expect(open.length).toBeGreaterThan(10_000);
    expect(denied.ok && open.some(({ range }) => rangesOverlap(range, denied.value))).toBe(false);
  });
});
