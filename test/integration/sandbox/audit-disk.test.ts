import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";

const WRITER = path.join(import.meta.dirname, "../../fixtures/audit-writer.ts");

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "agentbox-audit-"));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Runs shell where a disk of 64 KiB is mounted that nobody else sees; what `cat` prints last is the log. */
function runOnSmallDisk(script: string): string {
  const disk = path.join(root, "disk");
  mkdirSync(disk);
  const text = `mount -t tmpfs -o size=64k,mode=700 tmpfs "$1" && cd "$1" && writer() { "${process.execPath}" "${WRITER}" "$@"; } && ${script}`;
  return execFileSync("unshare", ["--mount", "sh", "-c", text, "sh", disk], { encoding: "utf8" });
}

const refusal = z.object({ refusal: z.literal("audit"), said: z.string() });
const told = z.object({ refused: refusal, stillRefused: refusal, begun: z.int(), counts: z.object({ written: z.int(), unknown: z.int() }) });

test("a full disk refuses operations, keeps the outcome of one under way, and takes all when there is room again", () => {
  const [line = "", ...log] = runOnSmallDisk('writer full "$PWD/log" "$PWD/ballast" && echo && cat log/audit.jsonl').split("\n");
  const { refused, stillRefused, begun, counts } = told.parse(JSON.parse(line));
  expect([refused.said, stillRefused.said]).toEqual([expect.stringContaining("ENOSPC"), expect.stringContaining("ENOSPC")]);
  expect(counts).toEqual(expect.objectContaining({ written: begun + 2, unknown: 0 }));
  // Without a gap: what the disk took in part was cut off before the next line.
  const sequence = log.slice(0, -1).map((text) => z.object({ seq: z.int() }).parse(JSON.parse(text)).seq);
  expect(sequence).toEqual(Array.from({ length: 1 + 2 * (begun + 2) + 2 }, (_, index) => index + 1));
});

test("a disk that is read only has no log, and so no session", () => {
  expect(runOnSmallDisk('writer open "$PWD/log" && mount -o remount,ro "$PWD" && writer open "$PWD/log"')).toMatch(/^null\{"refusal":"audit","said":".*EROFS/);
});
