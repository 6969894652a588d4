import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";
import { coversPattern, matchesPattern, parsePattern, renderPattern, type Pattern, type Surface } from "../../../policy/pattern.ts";
import { loadPublicSuffixTest, refuseOpenWildcard } from "../../../policy/wildcard-check.ts";

function pattern(text: string, surface: Surface = "rules"): Pattern {
  const result = parsePattern(text, surface);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

describe("parsePattern", () => {
  const rows: readonly [row: string, text: string, surface: Surface, canonical: string][] = [
    ["a name stays a name", "Example.COM.", "list", "example.com"],
    ["*.x in allow_hosts includes the apex", "*.example.com", "list", "**.example.com"],
    ["*.x in ordered rules does not", "*.example.com", "rules", "*.example.com"],
    ["*.x in allowlists/ does not", "*.example.com", "allowlist-file", "*.example.com"],
    ["**.x may be written anywhere", "**.example.com", "allowlist-file", "**.example.com"],
    ["* is allowed in ordered rules", "*", "rules", "*"],
    ["localhost needs no dot", "localhost", "list", "localhost"],
    ["an international wildcard becomes ASCII", "*.bücher.example", "rules", "*.xn--bcher-kva.example"],
  ];
  test.each(rows)("%s", (_row, text, surface, canonical) => {
    expect(renderPattern(pattern(text, surface))).toBe(canonical);
  });

  const refusals: readonly [row: string, text: string, surface: Surface, corrected: string][] = [
    ["* in a list, with the flag that means it", "*", "list", "--full-network"],
    ["* in an allowlist file", "*", "allowlist-file", "--full-network"],
    ["** in rules", "**", "rules", "write *"],
    ["a whole top-level domain", "*.com", "list", "*.example.com"],
    ["a whole top-level domain with two stars", "**.com", "rules", "*.example.com"],
    ["a star glued to a name", "*foo.com", "list", "write *.foo.com or foo.com"],
    ["a star in the middle", "a.*.b.com", "list", "**.b.com"],
    ["two wildcards", "*.*.example.com", "list", "write *.example.com"],
    ["https", "https://example.com/x", "list", "write example.com"],
    ["any other scheme", "ftp://example.com", "list", "write example.com"],
    ["a path", "example.com/api", "list", "write example.com"],
    ["a query", "example.com?x", "list", "write example.com"],
    ["user info", "user:secret@example.com", "list", "write example.com"],
    ["an empty entry", "  ", "list", "remove it"],
    ["a dotless name", "db", "list", "db.example.com"],
    ["an empty label", "*..example.com", "rules", "example.com"],
  ];
  test.each(refusals)("refuses %s", (_row, text, surface, corrected) => {
    const result = parsePattern(text, surface);
    expect(!result.ok && result.complaint.fix).toContain(corrected);
  });

  test("never repeats a password in the corrected form", () => {
    const result = parsePattern("https://user:secret@example.com/", "list");
    expect(!result.ok && result.complaint.fix).not.toContain("secret");
  });

  test("parses its own canonical text to the same pattern", () => {
    fc.assert(
      fc.property(fc.constantFrom("", "*.", "**."), fc.domain(), (stars, domain) => {
        const result = parsePattern(stars + domain, "rules");
        fc.pre(result.ok);
        expect(pattern(renderPattern(result.value))).toEqual(result.value);
      }),
    );
  });
});

describe("matchesPattern", () => {
  const rows: readonly [row: string, text: string, name: string, matches: boolean][] = [
    ["a name matches itself", "example.com", "example.com", true],
    ["a name does not match below itself", "example.com", "a.example.com", false],
    ["*.x does not match the apex", "*.example.com", "example.com", false],
    ["*.x matches one label below", "*.example.com", "a.example.com", true],
    ["*.x matches several labels below", "*.example.com", "a.b.example.com", true],
    ["*.x does not match a longer name without a dot", "*.example.com", "badexample.com", false],
    ["*.x does not match a name that only begins so", "*.example.com", "a.example.com.evil.org", false],
    ["**.x matches the apex", "**.example.com", "example.com", true],
    ["**.x does not match a longer name without a dot", "**.example.com", "badexample.com", false],
    ["* matches everything", "*", "a.b", true],
  ];
  test.each(rows)("%s", (_row, text, name, matches) => {
    expect(matchesPattern(pattern(text), name)).toBe(matches);
  });

  test("agrees with coversPattern: it covers exactly when it matches every name of the other", () => {
    // `z` stands in no pattern, so a name below each of them is among the witnesses.
    const names = namesOver(["a", "b", "z"], 4);
    const patterns = ["*", ...namesOver(["a", "b"], 3).flatMap((name) => (name.includes(".") ? [name, `*.${name}`, `**.${name}`] : []))].map((text) => pattern(text));
    for (const outer of patterns) {
      for (const inner of patterns) {
        const subset = names.every((name) => !matchesPattern(inner, name) || matchesPattern(outer, name));
        expect({ outer, inner, covers: coversPattern(outer, inner) }).toEqual({ outer, inner, covers: subset });
      }
    }
  });
});

function namesOver(labels: readonly string[], depth: number): readonly string[] {
  if (depth === 1) return labels;
  const shorter = namesOver(labels, depth - 1);
  return [...labels, ...shorter.flatMap((name) => labels.map((label) => `${label}.${name}`))];
}

describe("refuseOpenWildcard", () => {
  test.each(["*.co.uk", "**.com.au", "*.kawasaki.jp", "*.foo.ck"])("refuses the public suffix %s", (text) => {
    expect(refuseOpenWildcard(pattern(text), isPublicSuffix)?.complaint.fix).toContain("*.example.");
  });

  test.each(["*.example.co.uk", "**.example.com", "co.uk", "*.corp.internal", "*.github.io"])("accepts %s", (text) => {
    expect(refuseOpenWildcard(pattern(text), isPublicSuffix)).toBeUndefined();
  });

  test("refuses every wildcard when no text announced one", async () => {
    const isSuffix = await loadPublicSuffixTest(["example.com"]);
    expect(refuseOpenWildcard(pattern("*.example.com"), isSuffix)).toMatchObject({ ok: false });
    expect(refuseOpenWildcard(pattern("*.example.com"), await loadPublicSuffixTest(["*.example.com"]))).toBeUndefined();
  });
});
