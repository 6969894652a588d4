import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../policy/errors.ts";
import { parsePreset } from "../../../policy/preset.ts";
import { parseGithubFile, parseServicesFile } from "../../../policy/services-file.ts";

function message(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "";
}

function head(catchAll: string): string {
  return `PRESET_TITLE="T"\nPRESET_DESCRIPTION="D"\nPRESET_DATE="2026-11-21"\nPRESET_CATCH_ALL="${catchAll}"\n`;
}

describe("parseServicesFile", () => {
  test("reads both arrays with their places", () => {
    const { allowed, critical } = parseServicesFile("s.sh", 'ALLOWED_SERVICES=("a.com")\nCRITICAL_SERVICES=()');
    expect([allowed.map(({ text, place }) => [text, place.line]), critical]).toEqual([[["a.com", 1]], []]);
  });

  test("refuses a misspelt or missing array, since a list that is ignored is a hole", () => {
    const text = message(() => parseServicesFile("s.sh", 'ALLOWED_SERVICES=("a.com")\nCRITICAL_SERVICE=("a.com")'));
    expect(text).toContain("s.sh:2:1: CRITICAL_SERVICE is not known here");
    expect(text).toContain("CRITICAL_SERVICES is missing");
  });
});

test("wrong entries are told beside mistakes of form", () => {
  const text = message(() => parseServicesFile("s.sh", 'ALLOWED_SERVICES=(\n  "https://a.com"\n  b.com;\n)\nCRITICAL_SERVICES=()'));
  expect(text.split("\n").map((line) => line.split(" ")[0])).toEqual(["s.sh:2:3:", "s.sh:3:8:"]);
});

describe("parseGithubFile", () => {
  test("reads ranges and date", () => {
    const { ranges, date } = parseGithubFile("g.sh", 'GITHUB_RANGES_DATE="2025-07-25"\nGITHUB_RANGES=("140.82.112.0/20" "20.1.2.3/32" "20.1.2.3")');
    expect([ranges.map(({ text }) => text), date]).toEqual([["140.82.112.0/20", "20.1.2.3"], "2025-07-25"]);
  });

  test.each([
    ["a host", "2025-07-25", "github.com", "not an IP address"],
    ["a port", "2025-07-25", "20.1.2.3:22", "not an IP address"],
    ["bits below the prefix", "2025-07-25", "20.1.2.3/24", "write 20.1.2.0/24"],
    ["the whole internet", "2025-07-25", "0.0.0.0/0", "too large"],
    ["a day that does not exist", "2025-02-30", "20.1.2.3", "not a date"],
  ])("refuses %s", (_row, date, range, expected) => {
    expect(message(() => parseGithubFile("g.sh", `GITHUB_RANGES_DATE="${date}"\nGITHUB_RANGES=("${range}")`))).toContain(expected);
  });
});

describe("parsePreset", () => {
  test("reads entries and catch-all", () => {
    const preset = parsePreset("p", "p.sh", `${head("deny")}PRESET=("*.a.com")`);
    expect([preset.entries.map(({ text }) => text), preset.catchAll]).toEqual([["*.a.com"], "deny"]);
  });

  test("reports a wrong catch-all and every wrong entry together", () => {
    const text = message(() => parsePreset("p", "p.sh", `${head("maybe")}PRESET=("*foo.com" "https://x.com")`));
    expect(text.split("\n")).toHaveLength(3);
  });
});
