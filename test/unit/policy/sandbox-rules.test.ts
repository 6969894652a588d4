import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../policy/errors.ts";
import { SandboxRules, type RulePath } from "../../../policy/sandbox-rules.ts";
import type { SandboxRuleText } from "../../../policy/sandbox-schema.ts";
import { SANDBOX_INTENTS, type SandboxIntent, type SandboxTag } from "../../../policy/sandbox-words.ts";

const ROOT = "/home/me/project";

function at(relative: string, folding = false): RulePath {
  const below = relative === "" ? [] : relative.split("/");
  return { relative: below, absolute: [...ROOT.slice(1).split("/"), ...below], folding };
}

type Asked = { intent?: SandboxIntent; size?: number | undefined; tags?: readonly SandboxTag[]; folding?: boolean };

function find(rules: readonly SandboxRuleText[], path: string, asked: Asked = {}): string | undefined {
  const { intent, size, tags, folding } = { intent: "read" as const, size: 0, tags: [], folding: false, ...asked };
  const index = new SandboxRules(rules);
  return index.find(index.locate(at(path, folding)), { intent, size, tags })?.id;
}

const rule = (id: string, more: Partial<SandboxRuleText> = {}): SandboxRuleText => ({ id, action: "deny", ...more });

describe("a pattern matches", () => {
  test.each([
    { name: "the very path", path: "src/a.ts", matching: ["src/a.ts"], others: ["src/a.tsx", "src", "x/src/a.ts", "src/a.ts/b", "SRC/a.ts"] },
    { name: "a directory and all below it", path: "src/**", matching: ["src", "src/a", "src/.git/config"], others: ["srcs", "a/src", ""] },
    { name: "everything", path: "**", matching: ["", "a", ".env", "a/b/c"], others: [] },
    { name: "names of one level", path: "src/*", matching: ["src/a", "src/.env"], others: ["src", "src/a/b"] },
    { name: "an end of a name anywhere", path: "**/*.ts", matching: ["a.ts", ".ts", "a/b/c.ts"], others: ["a.tsx", "a.ts/b"] },
    { name: "a name anywhere, and what is below it", path: "**/secrets/**", matching: ["secrets", "a/secrets", "a/secrets/b/c", "secrets/x"], others: ["secret", "a/secretsx/b"] },
    { name: "one character each", path: "a?c", matching: ["abc", "a\u{1f600}c", "a.c"], others: ["ac", "abbc"] },
    { name: "several wildcards in one name", path: "*a*b?", matching: ["abx", "xaxbx", "aabbb", "abbx"], others: ["ab", "ba", "xaxb"] },
    { name: "names between names", path: "a/**/z", matching: ["a/z", "a/b/z", "a/z/z", "a/b/c/z"], others: ["a", "z", "a/z/b"] },
    { name: "absolute paths", path: `${ROOT}/*.pem`, matching: ["x.pem"], others: ["a/x.pem"] },
    { name: "absolute paths anywhere", path: "/**/.ssh/**", matching: [".ssh", "a/.ssh/id"], others: ["ssh"] },
    { name: "either form of a composed letter", path: "gr\u00f6ße/**", matching: ["gro\u0308ße/x", "gr\u00f6ße"], others: ["grosse"] },
    { name: "brackets that are escaped", path: String.raw`app/\[id\]/*`, matching: ["app/[id]/page"], others: ["app/i/page", "app/d/page"] },
  ])("$name", ({ path, matching, others }) => {
    expect(matching.filter((text) => find([rule("x", { path })], text) !== "x")).toEqual([]);
    expect(others.filter((text) => find([rule("x", { path })], text) !== undefined)).toEqual([]);
  });

  test.each([
    { name: "another case", path: "secrets/**", asked: "Secrets/A" },
    { name: "a sharp s", path: "straße", asked: "STRASSE" },
    { name: "the Kelvin sign", path: "key", asked: "\u212aey" },
    { name: "an invisible character in the name", path: ".env", asked: ".e\u200bnv" },
    { name: "a soft hyphen in the name", path: "**/*.pem", asked: "a/x.p\u00adem" },
    { name: "a decomposed letter in capitals", path: "größe", asked: "GRO\u0308SSE" },
  ])("$name, on a directory that folds and on no other", ({ path, asked }) => {
    expect(find([rule("x", { path })], asked, { folding: true })).toBe("x");
    expect(find([rule("x", { path })], asked)).toBeUndefined();
  });
});

describe("beside the path", () => {
  test.each([
    { name: "the first rule decides", rules: [rule("a", { path: "**/x" }), rule("b")], path: "x", asked: {}, id: "a" },
    { name: "the first decides, however particular the second is", rules: [rule("a"), rule("b", { path: "x" })], path: "x", asked: {}, id: "a" },
    { name: "a rule without a path is about all", rules: [rule("a")], path: "", asked: {}, id: "a" },
    { name: "an intent is one of those named", rules: [rule("a", { intent: ["write", "delete"] })], path: "x", asked: { intent: "delete" }, id: "a" },
    { name: "another intent is not", rules: [rule("a", { intent: ["write", "delete"] })], path: "x", asked: { intent: "read" }, id: undefined },
    { name: "an extension is the end of the name", rules: [rule("a", { extension: [".env"] })], path: "a/prod.env", asked: {}, id: "a" },
    { name: "an extension may be the whole name", rules: [rule("a", { extension: [".env"] })], path: "a/.env", asked: {}, id: "a" },
    { name: "an extension may have two dots", rules: [rule("a", { extension: [".tar.gz"] })], path: "x.y.tar.gz", asked: {}, id: "a" },
    { name: "an extension is not found in a directory's name", rules: [rule("a", { extension: [".env"] })], path: "a.env/b", asked: {}, id: undefined },
    { name: "an extension without its dot is none", rules: [rule("a", { extension: [".env"] })], path: "xenv", asked: {}, id: undefined },
    { name: "an extension in another case counts where the directory folds", rules: [rule("a", { extension: [".pem"] })], path: "x.PEM", asked: { folding: true }, id: "a" },
    { name: "a size is that or more", rules: [rule("a", { min_size: "1k" })], path: "x", asked: { size: 1024 }, id: "a" },
    { name: "less is too little", rules: [rule("a", { min_size: "1k" })], path: "x", asked: { size: 1023 }, id: undefined },
    { name: "an unknown size is large for a rule that denies", rules: [rule("a", { min_size: "1g" })], path: "x", asked: { size: undefined }, id: "a" },
    { name: "an unknown size is large for a rule that asks", rules: [rule("a", { min_size: "1g", action: "confirm" })], path: "x", asked: { size: undefined }, id: "a" },
    { name: "an unknown size is small for a rule that allows", rules: [rule("a", { min_size: "1k", action: "allow" }), rule("b")], path: "x", asked: { size: undefined }, id: "b" },
    { name: "the first of several sizes decides", rules: [rule("a", { min_size: "1g" }), rule("b", { min_size: "1k" }), rule("c", { min_size: "1m" })], path: "x", asked: { size: 2 ** 21 }, id: "b" },
    { name: "one of the risks is enough", rules: [rule("a", { tags: ["large", "hidden"] })], path: "x", asked: { tags: ["hidden", "delete"] }, id: "a" },
    { name: "none of the risks is not", rules: [rule("a", { tags: ["large", "hidden"] })], path: "x", asked: { tags: ["delete"] }, id: undefined },
  ] satisfies readonly { name: string; rules: SandboxRuleText[]; path: string; asked: Asked; id: string | undefined }[])("$name", ({ rules, path, asked, id }) => {
    expect(find(rules, path, asked)).toBe(id);
  });

  test("mistakes in rules that came past the schema are told together", () => {
    expect(() => new SandboxRules([rule("a b"), rule("c", { path: "../x" }), rule("c", { min_size: "much" })])).toThrow(ConfigError);
    expect(() => new SandboxRules([rule("a b"), rule("c", { path: "../x" }), rule("c", { min_size: "much" })])).toThrow(/not an id[^]*holds "\.\."|[^]*not a size[^]*one id/);
  });
});

const evaded = (rules: readonly SandboxRuleText[], from: string, to: string): string | undefined => new SandboxRules(rules).findEvaded(at(from), at(to))?.id;

describe("what a directory takes along when it is called otherwise", () => {
  test.each([
    { name: "is found where a denied file lies deep below it", rules: [rule("x", { path: "a/b/secret" })], from: "a", to: "z", id: "x" },
    { name: "is found where it is denied itself with all below", rules: [rule("x", { path: "a/**" })], from: "a", to: "z", id: "x" },
    { name: "is found where the new place has an earlier rule that allows", rules: [rule("ok", { path: "open/**", action: "allow" }), rule("x", { path: "**/*.pem" })], from: "a", to: "open/a", id: "x" },
    { name: "is found where a question took the place of a denial", rules: [rule("ask", { path: "open/**", action: "confirm" }), rule("x", { path: "**/*.pem" })], from: "a", to: "open/a", id: "x" },
    { name: "is found where a question is lost", rules: [rule("ask", { path: "a/**", action: "confirm" })], from: "a", to: "z", id: "ask" },
    { name: "is the denial, where a question is lost as well", rules: [rule("ask", { path: "a/**", action: "confirm" }), rule("x", { path: "a/b/**" })], from: "a", to: "z", id: "x" },
    { name: "is found below a name that only a wildcard says", rules: [rule("x", { path: "*/secret" })], from: "a", to: "b/c", id: "x" },
    { name: "is nothing where the same rules hold", rules: [rule("x", { path: "**/*.pem" })], from: "a", to: "z", id: undefined },
    { name: "is nothing where a wildcard says both names", rules: [rule("x", { path: "*/secret" })], from: "a", to: "b", id: undefined },
    { name: "is nothing where no rule is about it", rules: [rule("x", { path: "src/secret" })], from: "a", to: "z", id: undefined },
    { name: "is nothing where only a rule that allows is left behind", rules: [rule("ok", { path: "a/**", action: "allow" }), rule("x", { path: "**/*.pem" })], from: "a", to: "z", id: undefined },
    { name: "is nothing where the rule that allows comes later", rules: [rule("x", { path: "**/*.pem" }), rule("ok", { path: "open/**", action: "allow" })], from: "a", to: "open/a", id: undefined },
    { name: "is nothing where the rule is about the directory's name alone", rules: [rule("x", { path: "a" })], from: "a", to: "z", id: undefined },
  ])("$name", ({ rules, from, to, id }) => {
    expect(evaded(rules, from, to)).toBe(id);
  });
});

const NAMES = ["a", "b", "ab", ".env", "a.env", "ba"] as const;
const name = fc.constantFrom(...NAMES);
const part = fc.constantFrom(...NAMES, "*", "**", "?", "a*", "*b", "*a*", "?b", "*.env");
const path = fc.array(name, { maxLength: 4 }).map((names) => names.join("/"));
const anyRule = fc.record(
  {
    path: fc.tuple(fc.boolean(), fc.array(part, { minLength: 1, maxLength: 4 })).map(([absolute, parts]) => `${absolute ? `${ROOT}/` : ""}${parts.join("/")}`),
    intent: fc.uniqueArray(fc.constantFrom(...SANDBOX_INTENTS), { minLength: 1, maxLength: 3 }),
    min_size: fc.constantFrom("0", "10", "1k"),
    extension: fc.uniqueArray(fc.constantFrom(".env", ".e"), { minLength: 1 }),
    tags: fc.uniqueArray(fc.constantFrom<SandboxTag>("large", "hidden", "delete"), { minLength: 1 }),
    action: fc.constantFrom("allow" as const, "deny" as const, "confirm" as const),
  },
  { requiredKeys: ["action"] },
);
const anyRules = fc.array(anyRule, { maxLength: 12 }).map((rules) => rules.map((one, index): SandboxRuleText => ({ ...one, id: `r${index}` })));

/** The order of rules, one after the other, with a regular expression for each pattern. */
function findNaively(rules: readonly SandboxRuleText[], text: string, { intent, size, tags }: { intent: SandboxIntent; size: number | undefined; tags: readonly SandboxTag[] }): string | undefined {
  return rules.find((one) => {
    const least = { "0": 0, "10": 10, "1k": 1024 }[one.min_size ?? "0"] ?? 0;
    const known = size ?? (one.action === "allow" ? 0 : Number.POSITIVE_INFINITY);
    return matchesNaively(one.path ?? "**", text) && (one.intent?.includes(intent) ?? true) && known >= least && (one.extension?.some((end) => text.slice(text.lastIndexOf("/") + 1).endsWith(end)) ?? true) && (one.tags?.some((tag) => tags.includes(tag)) ?? true);
  })?.id;
}

function matchesNaively(pattern: string, text: string): boolean {
  const whole = pattern.startsWith("/") ? (text === "" ? ROOT : `${ROOT}/${text}`) : text === "" ? "" : `/${text}`;
  const parts = pattern.split("/").filter((one) => one !== "");
  const source = parts.map((one) => (one === "**" ? "(?:/[^/]+)*" : `/${one.replaceAll(".", "\\.").replaceAll("*", "[^/]*").replaceAll("?", "[^/]")}`)).join("");
  return new RegExp(`^${source}$`, "u").test(whole);
}

describe("the lookup", () => {
  test("finds what going through the rules one by one finds", () => {
    expect(() => fc.assert(
      fc.property(anyRules, path, fc.constantFrom(...SANDBOX_INTENTS), fc.constantFrom(undefined, 0, 10, 5000), fc.uniqueArray(fc.constantFrom<SandboxTag>("large", "hidden")), (rules, asked, intent, size, tags) => {
        const index = new SandboxRules(rules);
        return index.find(index.locate(at(asked)), { intent, size, tags })?.id === findNaively(rules, asked, { intent, size, tags });
      }),
      { numRuns: 4000 },
    )).not.toThrow();
  });

  test("never overlooks a denial that a new name of a directory above lifts", () => {
    expect(() => fc.assert(
      fc.property(anyRules, path, path, path, fc.constantFrom(...SANDBOX_INTENTS), (rules, from, to, below, intent) => {
        const index = new SandboxRules(rules);
        fc.pre(from !== "" && to !== "" && below !== "");
        const decide = (text: string): string => index.find(index.locate(at(text)), { intent, size: 0, tags: [] })?.action ?? "allow";
        const rank = { allow: 0, confirm: 1, deny: 2 }[decide(`${from}/${below}`)] ?? 0;
        const after = { allow: 0, confirm: 1, deny: 2 }[decide(`${to}/${below}`)] ?? 0;
        return after >= rank || index.findEvaded(at(from), at(to)) !== undefined;
      }),
      { numRuns: 6000 },
    )).not.toThrow();
  });

  const kinds = [
    { name: "names", make: (index: number): Partial<SandboxRuleText> => ({ path: `dir${index}/**` }) },
    { name: "wildcards", make: (index: number) => ({ path: `**/*x${index}y*` }) },
    { name: "ends of names", make: (index: number) => ({ path: `src/*.e${index}` }) },
    { name: "absolute paths", make: (index: number) => ({ path: `/home/u${index}/**` }) },
    { name: "extensions", make: (index: number) => ({ extension: [`.e${index}`] }) },
    { name: "sizes", make: (index: number) => ({ min_size: `${1_000_000 - index}`, path: "src/deep/**" }) },
    { name: "sizes that rise", make: (index: number) => ({ min_size: `${1_000_000 + index}`, path: "src/deep/**" }) },
    { name: "the same pattern again and again", make: () => ({ path: "src/**", intent: ["delete" as const] }) },
  ];
  test.each(kinds)("takes the same number of steps for 10 rules of $name and for 10,000", ({ make }) => {
    const counts = [10, 10_000].map((size) => {
      const index = new SandboxRules(Array.from({ length: size }, (_, at_) => rule(`r${at_}`, make(at_))));
      const steps = { count: 0 };
      index.find(index.locate(at("src/deep/er/file.txt"), { steps }), { intent: "read", size: 5, tags: ["large"] });
      return steps.count;
    });
    expect(counts[0]).toBe(counts[1]);
    expect(counts[0]).toBeLessThan(120);
  });

  test("takes no exponential time for a name that almost matches", () => {
    const steps = { count: 0 };
    const index = new SandboxRules([rule("x", { path: `**/${"*a".repeat(30)}b` })]);
    index.locate(at("a".repeat(250)), { steps });
    expect(steps.count).toBeLessThan(250 * 100);
  });
});
