import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../policy/config-file.ts";
import { ConfigError, renderComplaint } from "../../../policy/errors.ts";

const FILE = ".agentbox/config.toml";

function mistakes(text: string): string[] {
  try {
    parseConfig({ file: FILE, text });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.complaints.map(renderComplaint);
    throw error;
  }
}

/** A rule with a mistake in one key, and the line that it stands in. */
const rule = (line: string): string => `[[sandbox.rules]]\nid = 'a'\naction = 'deny'\n${line}`;
const grant = (root: string, access: string): string => `[[sandbox.grants]]\nroot = ${root}\naccess = ${access}`;

test("every key is read", () => {
  const text = `[sandbox]
large = "10m"
timeout = 60
quota_bytes = 1000000
quota_files = 100
rules = [
  { id = "no-secrets", path = "**/.env*", intent = ["read", "write"], min_size = "1k", extension = [".env"], tags = ["overwrite"], action = "deny" },
  { id = "rest", action = "confirm" },
]
grants = [{ root = "src", access = "rwcd", hidden = true, hard_links = false, trash = true, output = true }]
`;
  const { sandbox } = parseConfig({ file: FILE, text }).config;
  expect(sandbox).toEqual({
    large: "10m",
    timeout: 60,
    quota_bytes: 1_000_000,
    quota_files: 100,
    rules: [
      { id: "no-secrets", path: "**/.env*", intent: ["read", "write"], min_size: "1k", extension: [".env"], tags: ["overwrite"], action: "deny" },
      { id: "rest", action: "confirm" },
    ],
    grants: [{ root: "src", access: "rwcd", hidden: true, hard_links: false, trash: true, output: true }],
  });
});

test("what the documentation shows is right", () => {
  const page = readFileSync(path.join(import.meta.dirname, "../../../docs/configuration.md"), "utf8");
  const shown = [...page.matchAll(/```toml\n(?<text>[^]*?)```/g)].map(({ groups }) => groups?.["text"] ?? "").filter((text) => text.includes("[sandbox]"));
  expect(shown).toHaveLength(1);
  expect(shown.flatMap(mistakes)).toEqual([]);
});

test("all mistakes are told at once, each with its line and a caret", () => {
  const found = mistakes("[sandbox]\nlarge = '10 mb'\n[[sandbox.rules]]\nid = 'a'\naction = 'alow'\n[[sandbox.rules]]\nid = 'a'\naction = 'deny'\n");
  expect(found).toHaveLength(2);
  expect(found[0]).toMatch(/^\.agentbox\/config\.toml:2:9: "10 mb" is not a size; expected bytes, or a number with k, m or g[^]*\^{7}/);
  expect(found[1]).toMatch(/config\.toml:5:10: sandbox\.rules\[1\]\.action is "alow".*did you mean allow\?[^]*\^/);
});

describe("refuses", () => {
  test.each([
    { name: "an unknown key", text: "[sandbox]\nrule = []", said: /:2:1: \[sandbox\] has no key "rule"; .*did you mean rules\?/ },
    { name: "an unknown key of a rule", text: rule("paths = ['x']"), said: /:4:1: \[sandbox\.rules\[1\]\] has no key "paths".*did you mean path\?/ },
    { name: "a rule without an id", text: "[[sandbox.rules]]\naction = 'deny'", said: /:1:11: sandbox\.rules\[1\] has no id/ },
    { name: "a rule without an action", text: "[[sandbox.rules]]\nid = 'x'", said: /:1:11: sandbox\.rules\[1\] has no action/ },
    { name: "an id twice", text: "[sandbox]\nrules = [\n{ id = 'a', action = 'deny' },\n{ id = 'a', action = 'allow' }]", said: /:4:8: there is a rule "a" already/ },
    { name: "an id that is the guard's own", text: "[[sandbox.rules]]\nid = 'invariant:delete'\naction = 'allow'", said: /:2:6: "invariant:delete" is what the guard calls its own rules/ },
    { name: "the id for no rule", text: "[[sandbox.rules]]\nid = 'default'\naction = 'allow'", said: /:2:6: "default" is what the guard calls its own/ },
    { name: "an id that would forge a line", text: '[[sandbox.rules]]\nid = "a\\nb"\naction = "allow"', said: /:2:6: "a\\nb" is not an id/ },
    { name: "an unknown intent", text: rule("intent = ['execute']"), said: /:4:11: sandbox\.rules\[1\]\.intent\[1\] is "execute"; expected "read" or "write"/ },
    { name: "no intent at all", text: rule("intent = []"), said: /:4:10: sandbox\.rules\[1\]\.intent is an empty array; expected one word at least/ },
    { name: "an intent that is no list", text: rule("intent = 'read'"), said: /:4:10: .* is a string; expected an array.*write \["read"\]/ },
    { name: "an unknown tag", text: rule("tags = ['risky']"), said: /:4:9: sandbox\.rules\[1\]\.tags\[1\] is "risky"/ },
    { name: "an extension without its dot", text: rule("extension = ['env']"), said: /:4:14: "env" is not an extension.*write "\.env"/ },
    { name: "an extension with a wildcard", text: rule("extension = ['.e*']"), said: /:4:14: "\.e\*" is not an extension/ },
    { name: "a size that is no size", text: rule("min_size = '-1'"), said: /:4:12: "-1" is not a size/ },
    { name: "a size beyond all numbers", text: rule("min_size = '9999999999999g'"), said: /:4:12: .* is not a size/ },
    { name: "a malformed pattern, at its value", text: rule("path = 'src/../x'"), said: /:4:8: the pattern "src\/\.\.\/x" holds "\.\."/ },
    { name: "a grant without a root", text: "[[sandbox.grants]]\naccess = 'r'", said: /:1:11: sandbox\.grants\[1\] has no root/ },
    { name: "a grant with letters in another order", text: grant("'x'", "'wr'"), said: /:3:10: "wr" is not an access/ },
    { name: "a grant that gives nothing", text: grant("'x'", "''"), said: /:3:10: "" is not an access/ },
    { name: "a root with NUL", text: grant('"x\\u0000"', "'r'"), said: /:2:8: the text holds a NUL/ },
    { name: "no time at all", text: "[sandbox]\ntimeout = 0", said: /:2:11: sandbox\.timeout is the number 0; expected whole seconds from 1 to 86400/ },
    { name: "half a second", text: "[sandbox]\ntimeout = 0.5", said: /:2:11: sandbox\.timeout/ },
    { name: "a quota of nothing", text: "[sandbox]\nquota_files = 0", said: /:2:15: sandbox\.quota_files is the number 0; expected a whole number above 0/ },
    { name: "a quota that is no number", text: "[sandbox]\nquota_bytes = '1g'", said: /:2:15: sandbox\.quota_bytes is a string/ },
  ])("$name", ({ text, said }) => {
    expect(mistakes(text).join("\n")).toMatch(said);
    expect(mistakes(text)).toHaveLength(1);
  });
});

describe("takes", () => {
  test.each([
    { name: "an empty table", text: "[sandbox]" },
    { name: "a rule about everything", text: rule("") },
    { name: "a size in bytes", text: rule("min_size = '0'") },
    { name: "several ends of names", text: rule("extension = ['.env', '.tar.gz', '.Größe']") },
    { name: "access to delete alone", text: grant("'~/x'", "'d'") },
  ])("$name", ({ text }) => {
    expect(mistakes(text)).toEqual([]);
  });
});
