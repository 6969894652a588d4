import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const script = join(import.meta.dirname, "../../../scripts/check-github-ranges");
let scratch = "";

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "github ranges "));
  writeFileSync(join(scratch, "github.sh"), `GITHUB_RANGES_DATE="2025-07-25"\nGITHUB_RANGES=("192.30.252.0/22" "2606:50c0::/32" "20.1.2.3")\n`);
  symlinkSync(script, join(scratch, "link"));
});
afterAll(() => rmSync(scratch, { recursive: true }));

function check(meta: unknown, command = script): { status: number | null; stdout: string; stderr: string } {
  writeFileSync(join(scratch, "meta.json"), typeof meta === "string" ? meta : JSON.stringify(meta));
  const { status, stdout, stderr } = spawnSync(command, ["meta.json", "github.sh"], { cwd: scratch, encoding: "utf8" });
  return { status, stdout, stderr };
}

const equal = { web: ["192.30.252.0/22"], api: ["192.30.252.0/22", "2606:50C0::/32"], git: ["20.1.2.3/32"], hooks: ["203.0.113.0/24"], domains: {} };

describe("scripts/check-github-ranges", () => {
  test("is silent about equal lists, however they are written, and exits 0", () => {
    const { status, stdout } = check(equal);
    expect(stdout).toMatch(/^github\.sh .*: equal\n$/);
    expect(status).toBe(0);
  });

  test("prints what to add, with its uses, and what is gone, and exits 1", () => {
    const { status, stdout } = check({ ...equal, api: ["2606:50c0::/32", "192.30.252.0/22"], git: ["4.5.6.0/24"], web: ["4.5.6.0/24"] });
    expect(stdout.split("\n").slice(0, 2)).toEqual(['+ "4.5.6.0/24"  # web, git', '- "20.1.2.3"']);
    expect(status).toBe(1);
  });

  test("works through a link and in a directory with a space", () => {
    expect(check(equal, "./link").status).toBe(0);
  });

  test.each([
    ["a document that is not JSON", "<html>", "not JSON"],
    ["a document without the lists", { web: [] }, "api: "],
    ["a range that is none", { web: ["nonsense"], api: [], git: ["1.2.3.4/8"] }, "web[0]: "],
    ["an error answer of the API", { message: "rate limit" }, "the lists web, api, git"],
  ])("refuses %s with exit code 78", (_row, meta, message) => {
    const { status, stderr } = check(meta);
    expect(stderr).toContain(message);
    expect(status).toBe(78);
  });

  test("reports every bad range of a document at once", () => {
    expect(check({ web: ["x"], api: ["y"], git: ["1.2.3.4/8"] }).stderr.trim().split("\n")).toHaveLength(3);
  });

  test("refuses a missing file with exit code 78 and a missing argument with 64", () => {
    expect(spawnSync(script, ["/nowhere/meta.json"]).status).toBe(78);
    expect(spawnSync(script, []).status).toBe(64);
    expect(spawnSync(script, ["--help"], { encoding: "utf8" }).stderr).toContain("META_FILE");
  });
});
