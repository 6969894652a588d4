import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectOpenings } from "../../../entrypoint/openings.ts";
import { parseRange, rangeCovers, type Range } from "../../../policy/address.ts";
import { buildEffectiveList } from "../../../policy/effective-list.ts";

function listOf(...words: string[]): ReturnType<typeof buildEffectiveList> {
  const sources = [{ label: "test", surface: "allowlist-file" as const, words: words.map((text) => ({ text })) }];
  return buildEffectiveList({ sources, critical: [], isPublicSuffix: () => false });
}

function range(text: string): Range {
  const result = parseRange(text);
  if (!result.ok) throw new Error(text);
  return result.value;
}

describe("openings", () => {
  it("opens every address of a name on the ports of its entry", () => {
    const { learned } = collectOpenings({
      list: listOf("a.example:443,8443"),
      resolutions: [{ name: "a.example", addresses: ["93.184.216.34", "2606:2800:220::1"], failure: null }],
      githubRanges: [],
    });
    expect(learned).toEqual([
      { range: "93.184.216.34", protocol: "tcp", port: 443 },
      { range: "93.184.216.34", protocol: "tcp", port: 8443 },
      { range: "2606:2800:220::1", protocol: "tcp", port: 443 },
      { range: "2606:2800:220::1", protocol: "tcp", port: 8443 },
    ]);
  });

  it.each([
    ["a private address", "10.0.0.1"],
    ["loopback", "127.0.0.1"],
    ["the metadata address", "169.254.169.254"],
    ["a private address inside IPv6", "::ffff:10.0.0.1"],
    ["a local IPv6 address", "fd00::1"],
  ])("refuses %s of an allowed name and keeps its public ones", (_case, address) => {
    const { learned, refused } = collectOpenings({
      list: listOf("a.example"),
      resolutions: [{ name: "a.example", addresses: [address, "93.184.216.34"], failure: null }],
      githubRanges: [],
    });
    expect(learned.map((entry) => entry.range)).toEqual(["93.184.216.34"]);
    expect(refused).toEqual([{ name: "a.example", address, kind: expect.any(String) }]);
  });

  it("opens a private address that is listed itself", () => {
    const { literal } = collectOpenings({ list: listOf("10.0.0.1:5432"), resolutions: [], githubRanges: [] });
    expect(literal).toEqual([{ range: "10.0.0.1", protocol: "tcp", port: 5432 }]);
  });

  it("opens GitHub's ranges on 22 and 443", () => {
    const { literal } = collectOpenings({ list: listOf("github.com"), resolutions: [], githubRanges: [range("140.82.112.0/20")] });
    expect(literal.map(({ port }) => port)).toEqual([22, 443]);
  });

  it("leaves out blocks inside another block of the same port, and loses no address", () => {
    const block = fc.record({ value: fc.integer({ min: 0, max: 255 }), prefix: fc.integer({ min: 24, max: 32 }) });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 30 }), (blocks) => {
        const ranges = blocks.map(({ value, prefix }) => range(`93.184.216.${(value >> (32 - prefix)) << (32 - prefix)}/${prefix}`));
        const kept = collectOpenings({ list: listOf(), resolutions: [], githubRanges: ranges }).literal.filter(({ port }) => port === 443);
        const texts = kept.map((entry) => range(entry.range));
        for (const wanted of ranges) expect(texts.some((have) => rangeCovers(have, wanted))).toBe(true);
        for (const one of texts) expect(texts.filter((other) => rangeCovers(other, one))).toHaveLength(1);
      }),
    );
  });
});
