import { describe, expect, test } from "vitest";
import { buildPolicy } from "../../../policy/policy.ts";
import { parseEntry, renderEntry } from "../../../policy/entry.ts";
import { chooseProbe } from "../../../policy/probe.ts";

function allowing(...words: string[]): string | undefined {
  const list = words.map((word) => {
    const entry = parseEntry(word, "rules");
    if (!entry.ok) throw new Error(entry.complaint.what);
    return { entry: entry.value, text: renderEntry(entry.value), origins: [] };
  });
  return chooseProbe(buildPolicy({ list }));
}

describe("the name by which a box proves that its resolver refuses", () => {
  test.each([
    { name: "the first one, where nothing of it is allowed", words: ["github.com"], probe: "example.com" },
    { name: "the next, where the first is allowed", words: ["example.com", "**.example.net"], probe: "example.org" },
    { name: "the next, where names below the first are allowed, of which the proxy would be told", words: ["*.example.com"], probe: "example.net" },
    { name: "none, where every name is allowed", words: ["*"], probe: undefined },
  ])("$name", ({ words, probe }) => {
    expect(allowing(...words)).toBe(probe);
  });
});
