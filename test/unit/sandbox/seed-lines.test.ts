import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

// What the guard is built from promises these, in its sections on invariants, edge cases and logging.
const PROMISES = [
  "Default deny for any path outside granted roots.",
  "Resolve real paths and reject symlink escapes.",
  "Deny hidden/system paths by default unless explicitly granted.",
  "Deny cross-root moves and renames.",
  "Require confirmation for delete, move, rename, and overwrite.",
  "Case-insensitive file systems should compare normalized paths.",
  "Atomic writes should use temp files inside output roots.",
  "Large file operations may require explicit confirmation.",
  "Batch operations should surface aggregated risk tags.",
  "Record tool call inputs and outputs.",
  "Record policy decision and rule id.",
  "Record confirmation prompts and user responses.",
  "Emit summary entries compatible with TaskSummary.",
];

const root = path.join(import.meta.dirname, "../../..");
const page = readFileSync(path.join(root, "docs/security.md"), "utf8");

test.each(PROMISES)("%s has a named test", (promise) => {
  const row = page.split("\n").find((line) => line.startsWith(`| ${promise} |`));
  const { file = "", words = "" } = /`(?<file>[^`]+)` \("(?<words>[^"]+)"\)/.exec(row ?? "")?.groups ?? {};
  const titles = readFileSync(path.join(root, "test", file), "utf8").split("\n").filter((line) => /\b(?:test|describe)\b|\]\)\(/.test(line));
  expect(words).not.toBe("");
  expect(titles.filter((line) => line.includes(words))).not.toEqual([]);
});
