import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../policy/config-file.ts";
import type { SandboxRuleText } from "../../../policy/sandbox-schema.ts";
import { type JudgedAction, type JudgedPath, PolicyEngine } from "../../../sandbox/policy-engine.ts";
import { INTENTS, type Intent, RISK_TAGS } from "../../../sandbox/request.ts";

const ROOT = "/srv/work";
const OTHER = "/srv/other";

function at(relative: string, more: Partial<JudgedPath> = {}): JudgedPath {
  const root = more.root ?? ROOT;
  return { root, relative, absolute: relative === "" ? root : `${root}/${relative}`, exists: true, hidden: false, folding: false, ...more };
}

const act = (intent: Intent, more: Partial<JudgedAction> = {}): JudgedAction => ({ intent, target: at("a.txt"), size: 10, directory: false, ...more });
const missing = at("new.txt", { exists: false });
const allowAll: SandboxRuleText = { id: "all", path: "**", action: "allow" };
const rule = (id: string, more: Partial<SandboxRuleText> = {}): SandboxRuleText => ({ id, action: "deny", ...more });

describe("without a rule", () => {
  test.each([
    { name: "reading is allowed", action: act("read"), decision: "allow", id: "default", tags: [] },
    { name: "listing is allowed", action: act("list", { target: at("") }), decision: "allow", id: "default", tags: [] },
    { name: "making a file is allowed", action: act("create", { target: missing }), decision: "allow", id: "default", tags: [] },
    { name: "writing a file that is not there is allowed", action: act("write", { target: missing }), decision: "allow", id: "default", tags: [] },
    { name: "writing one that is there is asked about", action: act("write"), decision: "confirm", id: "invariant:overwrite", tags: ["overwrite"] },
    { name: "making one that is there already is asked about", action: act("create"), decision: "confirm", id: "invariant:overwrite", tags: ["overwrite"] },
    { name: "deleting is asked about", action: act("delete"), decision: "confirm", id: "invariant:delete", tags: ["delete"] },
    { name: "deleting is asked about whatever its size", action: act("delete", { size: undefined }), decision: "confirm", id: "invariant:delete", tags: ["delete"] },
    { name: "renaming is asked about", action: act("rename", { destination: missing }), decision: "confirm", id: "invariant:rename", tags: ["rename"] },
    { name: "moving is asked about", action: act("move", { destination: missing }), decision: "confirm", id: "invariant:move", tags: ["move"] },
    { name: "moving over a file has both risks", action: act("move", { destination: at("b.txt") }), decision: "confirm", id: "invariant:move", tags: ["move", "overwrite"] },
    { name: "reading what is large is asked about", action: act("read", { size: 10 * 2 ** 20 }), decision: "confirm", id: "invariant:large", tags: ["large"] },
    { name: "reading a byte less is not", action: act("read", { size: 10 * 2 ** 20 - 1 }), decision: "allow", id: "default", tags: [] },
    { name: "writing nobody knows how much is asked about", action: act("create", { target: missing, size: undefined }), decision: "confirm", id: "invariant:large", tags: ["large"] },
    { name: "a size that is no number is large", action: act("read", { size: Number.NaN }), decision: "confirm", id: "invariant:large", tags: ["large"] },
    { name: "a path in no root is denied", action: act("read", { target: undefined }), decision: "deny", id: "invariant:outside-roots", tags: [] },
    { name: "a path that only claims a root is denied", action: act("read", { target: at("x", { absolute: "/etc/shadow" }) }), decision: "deny", id: "invariant:outside-roots", tags: [] },
    { name: "a path with .. is denied", action: act("read", { target: at("../other/x") }), decision: "deny", id: "invariant:outside-roots", tags: [] },
    { name: "moving to no root is denied", action: act("move", { destination: undefined }), decision: "deny", id: "invariant:outside-roots", tags: ["move"] },
    { name: "moving into another root is denied", action: act("move", { destination: at("b", { root: OTHER, exists: false }) }), decision: "deny", id: "invariant:cross-root", tags: ["move"] },
    { name: "renaming into a root inside this one is denied", action: act("rename", { destination: at("b", { root: `${ROOT}/sub`, exists: false }) }), decision: "deny", id: "invariant:cross-root", tags: ["rename"] },
    { name: "hidden names and programs are told", action: act("read", { target: at(".x", { hidden: true }), executable: true }), decision: "allow", id: "default", tags: ["hidden", "executable"] },
  ] satisfies { name: string; action: JudgedAction; decision: string; id: string; tags: string[] }[])("$name", ({ action, decision, id, tags }) => {
    expect(new PolicyEngine().decide(action)).toMatchObject({ decision, ruleId: id, tags });
  });
});

describe("with rules", () => {
  test.each([
    { name: "a rule that allows gives its id", rules: [allowAll], action: act("read"), decision: "allow", id: "all" },
    { name: "a rule that denies stands", rules: [rule("no", { path: "a.*" })], action: act("read"), decision: "deny", id: "no" },
    { name: "a rule that denies wins over what would be asked", rules: [rule("no")], action: act("delete"), decision: "deny", id: "no" },
    { name: "a rule that allows does not lift a question", rules: [allowAll], action: act("delete"), decision: "confirm", id: "invariant:delete" },
    { name: "a rule that asks keeps its id", rules: [rule("ask", { action: "confirm" })], action: act("delete"), decision: "confirm", id: "ask" },
    { name: "a rule that asks does so where nothing else would", rules: [rule("ask", { action: "confirm" })], action: act("read"), decision: "confirm", id: "ask" },
    { name: "the first rule decides", rules: [{ ...allowAll, path: "a.txt" }, rule("no")], action: act("read"), decision: "allow", id: "all" },
    { name: "a risk can be denied", rules: [rule("no", { tags: ["overwrite"] })], action: act("write"), decision: "deny", id: "no" },
    { name: "a risk that is not there is not", rules: [rule("no", { tags: ["overwrite"] })], action: act("write", { target: missing }), decision: "allow", id: "default" },
    { name: "no rule lets a path out of the roots", rules: [allowAll], action: act("read", { target: undefined }), decision: "deny", id: "invariant:outside-roots" },
    { name: "no rule asks about a move into another root", rules: [rule("ask", { action: "confirm" })], action: act("move", { destination: at("b", { root: OTHER }) }), decision: "deny", id: "invariant:cross-root" },
    { name: "large is what the configuration says", rules: [], large: "11", action: act("read"), decision: "allow", id: "default" },
    { name: "large begins at that size", rules: [], large: "10", action: act("read"), decision: "confirm", id: "invariant:large" },
  ] satisfies { name: string; rules: SandboxRuleText[]; large?: string; action: JudgedAction; decision: string; id: string }[])("$name", ({ rules, large, action, decision, id }) => {
    expect(new PolicyEngine({ rules, large }).decide(action)).toMatchObject({ decision, ruleId: id });
  });

  // Each is a way round a rule that names one intent or one path.
  test.each([
    { name: "what may not be made is not written either, where it is not there", rules: [rule("no", { intent: ["create"], path: "**/*.sh" })], action: act("write", { target: at("x.sh", { exists: false }) }), id: "no" },
    { name: "what may not be read is not moved to where it may", rules: [rule("no", { intent: ["read"], path: "secret" })], action: act("move", { target: at("secret"), destination: missing }), id: "no" },
    { name: "what may not be deleted is not renamed away", rules: [rule("no", { intent: ["delete"], path: "keep" })], action: act("rename", { target: at("keep"), destination: missing }), id: "no" },
    { name: "what may not be made does not arrive by a move", rules: [rule("no", { intent: ["create"], path: "hooks/**" })], action: act("move", { destination: at("hooks/x", { exists: false }) }), id: "no" },
    { name: "what may not be written is not replaced by a move", rules: [rule("no", { intent: ["write"], path: "b" })], action: act("move", { destination: at("b") }), id: "no" },
    { name: "a directory takes no denied file along", rules: [rule("no", { path: "dir/secret" })], action: act("rename", { target: at("dir"), destination: at("pub", { exists: false }), directory: true }), id: "no" },
    { name: "what nobody says is no directory is judged as one", rules: [rule("no", { path: "dir/secret" })], action: act("rename", { target: at("dir"), destination: at("pub", { exists: false }), directory: undefined }), id: "no" },
    { name: "another case is the same name where the directory folds", rules: [rule("no", { path: "secret" })], action: act("read", { target: at("SECRET", { folding: true }) }), id: "no" },
  ] satisfies { name: string; rules: SandboxRuleText[]; action: JudgedAction; id: string }[])("$name", ({ rules, action, id }) => {
    expect(new PolicyEngine({ rules }).decide(action)).toMatchObject({ decision: "deny", ruleId: id });
    const control = { ...action, target: at("plain", { exists: false }), ...(action.destination === undefined ? {} : { destination: missing }) };
    expect(new PolicyEngine({ rules }).decide(control).decision).not.toBe("deny");
  });

  test("a question about what lies below a directory has the rule's own id, not that of every rename", () => {
    const rules = [rule("ask", { path: "dir/**", action: "confirm", intent: ["read"] })];
    const moved = act("rename", { target: at("dir/a"), destination: at("pub", { exists: false }), directory: true });
    expect(new PolicyEngine({ rules }).decide(moved)).toMatchObject({ decision: "confirm", ruleId: "ask" });
  });

  test("a reason names the rule and what it is about, without what a terminal would obey", () => {
    const verdict = new PolicyEngine({ rules: [rule("no", { path: "a\u202e*", intent: ["read"] })] }).decide(act("move", { target: at("a\u202ex"), destination: missing }));
    expect(verdict.reason).toBe(String.raw`rule no denies read, which move does as well for "a\u202e*"`);
  });

  test("rules come as the configuration has them", () => {
    const { sandbox } = parseConfig({ file: "c", text: "[sandbox]\nlarge = '1k'\nrules = [{ id = 'no', path = '**/.env', action = 'deny' }]" }).config;
    const engine = new PolicyEngine(sandbox);
    expect(engine.decide(act("read", { target: at("a/.env") }))).toMatchObject({ decision: "deny", ruleId: "no" });
    expect(engine.decide(act("read", { size: 1024 }))).toMatchObject({ decision: "confirm", ruleId: "invariant:large" });
  });
});

describe("a batch", () => {
  const read = act("read");

  test("has the strictest decision and the risks of all", () => {
    const verdict = new PolicyEngine({ rules: [rule("no", { path: "x" })] }).decideBatch([read, act("delete"), act("read", { target: at("x") }), act("write")]);
    expect(verdict).toMatchObject({ decision: "deny", tags: ["delete", "overwrite"] });
    expect(verdict.verdicts.map(({ decision }) => decision)).toEqual(["allow", "confirm", "deny", "confirm"]);
  });

  test.each([
    { name: "ten are none", count: 10, tags: [], decision: "allow" },
    { name: "eleven are one, and a rule may say so", count: 11, tags: ["batch"], decision: "confirm" },
  ])("$name", ({ count, tags, decision }) => {
    const engine = new PolicyEngine({ rules: [rule("many", { tags: ["batch"], action: "confirm" })] });
    expect(engine.decideBatch(Array.from({ length: count }, () => read))).toMatchObject({ tags, decision });
  });

  test("of nothing is allowed", () => {
    expect(new PolicyEngine().decideBatch([])).toEqual({ decision: "allow", tags: [], verdicts: [] });
  });
});

const fingerprint = (one: SandboxRuleText, source = "/a/config.toml"): string | undefined => new PolicyEngine({ rules: [one], source }).fingerprint(one.id);

describe("a fingerprint", () => {
  test.each([
    { name: "is another where the rule is", same: false, other: fingerprint(rule("x", { path: "b" })) },
    { name: "is another where the rule is somebody else's", same: false, other: fingerprint(rule("x", { path: "a" }), "/b/config.toml") },
    { name: "is the same where the keys stand in another order", same: true, other: fingerprint({ path: "a", action: "deny", id: "x" }) },
  ])("$name", ({ same, other }) => {
    expect(other === fingerprint(rule("x", { path: "a" }))).toBe(same);
  });

  test("is none for what the guard asks about itself", () => {
    expect(new PolicyEngine().fingerprint("invariant:delete")).toBeUndefined();
    expect(new PolicyEngine().fingerprint("default")).toBeUndefined();
  });
});

const name = fc.constantFrom("a", "b", ".env", "x.sh");
const relative = fc.array(name, { maxLength: 3 }).map((names) => names.join("/"));
const place = fc.record({ relative, root: fc.constantFrom(ROOT, OTHER, `${ROOT}/a`), exists: fc.boolean(), hidden: fc.boolean(), folding: fc.boolean() }).map(({ relative: path, ...more }) => at(path, more));
const anyAction: fc.Arbitrary<JudgedAction> = fc.record({ intent: fc.constantFrom(...INTENTS), target: fc.option(place, { nil: undefined }), destination: fc.option(place, { nil: undefined }), size: fc.option(fc.nat(50_000_000), { nil: undefined }), directory: fc.option(fc.boolean(), { nil: undefined }) });
const anyRules = fc.array(
  fc.record(
    {
      path: fc.constantFrom("**", "/**", "*", "a/**", "**/.env", "**/*.sh", `${ROOT}/**`),
      intent: fc.uniqueArray(fc.constantFrom(...INTENTS), { minLength: 1 }),
      min_size: fc.constantFrom("0", "1m"),
      tags: fc.uniqueArray(fc.constantFrom(...RISK_TAGS), { minLength: 1 }),
      action: fc.constantFrom("allow" as const, "allow" as const, "deny" as const, "confirm" as const),
    },
    { requiredKeys: ["action"] },
  ),
  { maxLength: 6 },
).map((rules) => rules.map((one, index): SandboxRuleText => ({ ...one, id: `r${index}` })));

describe("no list of rules", () => {
  test("lets anything out of the roots, or from one into another", () => {
    expect(() => fc.assert(
      fc.property(anyRules, anyAction, (rules, action) => {
        const moves = action.intent === "move" || action.intent === "rename";
        const outside = action.target === undefined || (moves && action.destination?.root !== action.target.root);
        return !outside || new PolicyEngine({ rules }).decide(action).decision === "deny";
      }),
      { numRuns: 4000 },
    )).not.toThrow();
  });

  test("makes a question of the guard's own a yes", () => {
    expect(() => fc.assert(
      fc.property(anyRules, anyAction, (rules, action) => new PolicyEngine().decide(action).decision === "allow" || new PolicyEngine({ rules }).decide(action).decision !== "allow"),
      { numRuns: 4000 },
    )).not.toThrow();
  });

  test("that only denies makes anything laxer", () => {
    const rank = { allow: 0, confirm: 1, deny: 2 };
    expect(() => fc.assert(
      fc.property(anyRules, anyAction, (rules, action) => {
        const denying = rules.map((one) => ({ ...one, action: "deny" as const }));
        return rank[new PolicyEngine({ rules: denying }).decide(action).decision] >= rank[new PolicyEngine().decide(action).decision];
      }),
      { numRuns: 2000 },
    )).not.toThrow();
  });
});

test("a decision takes as many steps with ten thousand rules as with ten", () => {
  const action = act("rename", { target: at("src/deep/er/file.txt"), destination: at("src/deep/er/other.txt", { exists: false }), directory: undefined });
  const counts = [10, 10_000].map((count) => {
    const steps = { count: 0 };
    new PolicyEngine({ rules: Array.from({ length: count }, (_, index) => rule(`r${index}`, { path: index % 2 === 0 ? `dir${index}/**` : `**/*x${index}y*` })) }).decide(action, steps);
    return steps.count;
  });
  expect(counts[0]).toBe(counts[1]);
  expect(counts[0]).toBeGreaterThan(0);
});
