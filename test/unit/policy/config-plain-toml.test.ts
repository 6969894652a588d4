import { readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { parse as parseValues } from "smol-toml";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../policy/config-file.ts";
import { findPlainPlace, scanPlainToml } from "../../../policy/config-plain-toml.ts";
import { type ConfigPath, SpanIndex } from "../../../policy/config-span-index.ts";
import { renderConfigTemplate } from "../../../policy/config-template.ts";
import { parseTree } from "../../../policy/config-toml.ts";

/** Every path that the scan has a place for. */
function listPaths(text: string): ConfigPath[] {
  return [...(scanPlainToml(text) ?? [])].flatMap(([name, { elements }]) => [name.split("."), ...elements.map((_, index) => [...name.split("."), index])]);
}

/** The places of the scan, and those of the whole tree for the same paths. */
function comparePlaces(text: string): { scanned: unknown; indexed: unknown } {
  const places = scanPlainToml(text);
  const index = new SpanIndex(parseTree("x.toml", text));
  const paths = listPaths(text);
  return { scanned: paths.map((at) => [at, findPlainPlace(places, at)]), indexed: paths.map((at) => [at, (index.valueSpan(at) ?? index.keySpan(at))?.start]) };
}

describe("a plain text", () => {
  test.each([
    { name: "dotted keys", text: "a.b-c = 1\n[t]\nd.e = ['x']\n", paths: 3 },
    { name: "values of every kind", text: "a = 1\nb = -0.5\nc = true\nd = 'x'\ne = \"y\"\n[t]\na = false\n", paths: 6 },
    { name: "an array on one line", text: "[network]\nallow_hosts = ['a.example.com', \"b.example.com\" ,'c.example.com',]\n", paths: 4 },
    { name: "an array over lines, with comments, blank lines and a comma at its end", text: "[network]\nallow_hosts = [ # first\n\n  'a.example.com', # ] }\n  # 'not.example.com',\n  'b.example.com'\n , ]\n", paths: 3 },
    { name: "inline tables", text: "[network]\nrules = [\n  { domain = '*', action = \"allow\", ports = [80, 443] },\n  {},\n]\n", paths: 3 },
    { name: "arrays of tables", text: "[[network.rules]]\ndomain = '*'\n\n  [[network.rules]]\ndomain = 'x'\n", paths: 3 },
    { name: "Windows line ends", text: "[network]\r\nallow_hosts = [\r\n 'a.example.com', # x\r\n]\r\n# end", paths: 2 },
    { name: "a nested header before its parent", text: "[network.policy]\nmode = 'allow-list'\n[network]\nmode = 'none'", paths: 2 },
    { name: "characters beyond the first plane", text: "[network]\nallow_hosts = ['😀.example.com', 'é.example.com']\n", paths: 3 },
    { name: "nothing but blanks", text: " \t\n  # x", paths: 0 },
  ])("has the places of the tree: $name", ({ text, paths }) => {
    const { scanned, indexed } = comparePlaces(text);
    expect(listPaths(text)).toHaveLength(paths);
    expect(scanned).toEqual(indexed);
  });

  test.each([
    ["the full example", readFileSync(path.join(import.meta.dirname, "../../fixtures/config/full.toml"), "utf8"), "network.allow_hosts"],
    ["what agentbox setup writes", renderConfigTemplate({ presets: ["rust"], allowHosts: ["a.example.com", "*.example.org:8443"] }), "network.presets"],
  ])("has the places of the tree: %s", (_name, text, known) => {
    const { scanned, indexed } = comparePlaces(text);
    expect(scanPlainToml(text)?.has(known)).toBe(true);
    expect(scanned).toEqual(indexed);
  });
});

describe("is left to the whole parser", () => {
  test.each([
    { name: "a string over lines", text: 'a = """\nx"""' },
    { name: "a literal string over lines", text: "a = '''\nx'''" },
    { name: "an escape", text: 'a = "\\u0061"' },
    { name: "a quoted key", text: "'a' = 1" },
    { name: "blanks in a dotted key", text: "a . b = 1" },
    { name: "blanks in a header", text: "[ a ]" },
    { name: "a date", text: "a = 2026-01-01" },
    { name: "an infinite number", text: "a = inf" },
    { name: "a number with underscores", text: "a = 1_000" },
    { name: "a number with a leading zero", text: "a = 01" },
    { name: "an array in an array over lines", text: "a = [[\n1]]" },
    { name: "an inline table over lines, which only a later TOML has", text: "a = { b = 1,\n c = 2 }" },
    { name: "an inline table with a comma at its end, which only a later TOML has", text: "a = { b = 1, }" },
    { name: "an array without its end", text: "a = [1, 2" },
    { name: "an open string", text: "a = 'x" },
    { name: "two values", text: "a = 1 2" },
    { name: "two elements without a comma", text: "a = ['x' 'y']" },
    { name: "two commas", text: "a = ['x',, 'y']" },
    { name: "a word without quotes", text: "a = allow" },
    { name: "a word that begins like a value", text: "a = truely" },
    { name: "something behind a header", text: "[a] b = 1" },
    { name: "a pair that no line end follows", text: "a = 1 b = 2" },
    { name: "a key that stands there twice", text: "a = 1\na = 2" },
    { name: "a table in an element of an array of tables", text: "[[a]]\n[a.b]\nc = 1" },
    { name: "a table in the place of a value", text: "[a]\nb = 1\n[a.b]\nc = 1" },
  ])("$name", ({ text }) => {
    expect(scanPlainToml(text)).toBeUndefined();
  });
});

test("whatever the scan takes is TOML 1.0, with every value where the tree has it", () => {
  const key = fc.constantFrom("a", "b", "rules", "c-d", "x_1");
  const scalar = fc.oneof(fc.constantFrom("true", "'x'", '"y # ]"', "443", "-1.5", "''", "'é漢😀'", "1e3", "0x1f", "'''z'''", '"\\t"'), fc.nat().map(String));
  const blank = fc.constantFrom("", " ", "\t", "  ");
  const gap = fc.constantFrom("", " ", "\n", "\r\n", " # c, ]\n", "\n\n  ");
  const inline = fc.tuple(fc.uniqueArray(fc.tuple(key, blank, fc.oneof(scalar, listsOf(scalar, blank))), { selector: ([name]) => name }), blank).map(([pairs, end]) => `{${pairs.map(([name, space, value]) => `${space}${name} =${space}${value}`).join(",")}${end}}`);
  const dotted = fc.array(key, { minLength: 1, maxLength: 3 }).map((names) => names.join("."));
  const pair = fc.tuple(blank, dotted, fc.oneof({ weight: 3, arbitrary: scalar }, inline, listsOf(fc.oneof(scalar, inline), gap)), blank).map(([indent, name, value, end]) => `${indent}${name} = ${value}${end}`);
  const header = fc.tuple(dotted, fc.boolean()).map(([name, many]) => (many ? `[[${name}]]` : `[${name}]`));
  const line = fc.oneof({ weight: 4, arbitrary: pair }, header, fc.constantFrom("", "# x", "  # [y]"));
  const text = fc.tuple(fc.array(line), fc.constantFrom("\n", "\r\n")).map(([lines, end]) => lines.join(end));
  const damage = fc.tuple(text, fc.nat(), fc.constantFrom("", "\n", '"', "'", "[", "]", "{", "}", ",", "=", ".", "#", " ", "\\")).map(([whole, at, piece]) => `${whole.slice(0, at % (whole.length + 1))}${piece}${whole.slice((at % (whole.length + 1)) + 1)}`);
  let taken = 0;
  fc.assert(
    fc.property(fc.oneof(text, damage), (given) => {
      if (scanPlainToml(given) === undefined || !isRead(given)) return;
      taken += 1;
      const { scanned, indexed } = comparePlaces(given);
      expect(scanned).toEqual(indexed);
    }),
    { numRuns: 5000 },
  );
  expect(taken).toBeGreaterThan(500);
});

/** Arrays of an element, with what may stand between. */
function listsOf(element: fc.Arbitrary<string>, space: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(fc.array(fc.tuple(space, element, space)), space, fc.boolean()).map(([elements, end, comma]) => `[${elements.map((parts) => parts.join("")).join(",")}${comma && elements.length > 0 ? "," : ""}${end}]`);
}

/** What the other reader refuses goes no further: keys that are written twice, above all. */
function isRead(text: string): boolean {
  try {
    parseValues(text);
    return true;
  } catch {
    return false;
  }
}

test("a configuration of ten thousand rules has every place, and its mistake its caret", () => {
  const rules = Array.from({ length: 10_000 }, (_, index) => `[[network.rules]]\ndomain = "n${index}.example.com"\naction = "${index === 9_998 ? "alow" : "allow"}"\n`);
  const right = rules.join("\n").replace('"alow"', '"deny"');
  const { placeOf } = parseConfig({ file: "x.toml", text: right });
  expect([0, 1, 9_999].map((index) => placeOf(["network", "rules", index]))).toEqual([0, 1, 9_999].map((index) => ({ file: "x.toml", line: 4 * index + 1, column: 11 })));
  expect(() => parseConfig({ file: "x.toml", text: rules.join("\n") })).toThrow(/^x\.toml:39995:10: network\.rules\[9999\]\.action is "alow"; expected "allow" or "deny"; fix: did you mean allow\?\n {2}39995 \| action = "alow"\n {8}\| {10}\^{6}$/);
});
