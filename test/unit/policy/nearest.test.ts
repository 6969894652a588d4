import { expect, test } from "vitest";
import { findNearest } from "../../../policy/nearest.ts";

test.each([
  { name: "finds a word with two letters swapped", word: "shlel", nearest: "shell" },
  { name: "finds a word with a letter missing", word: "clude", nearest: "claude" },
  { name: "finds a word with a letter too many", word: "doctorr", nearest: "doctor" },
  { name: "does not mind capitals", word: "Codex", nearest: "codex" },
  { name: "finds nothing for a word that is far from all", word: "frobnicate", nearest: undefined },
  { name: "does not turn a short word into any other short word", word: "x", nearest: undefined },
])("$name", ({ word, nearest }) => {
  expect(findNearest(word, ["shell", "claude", "codex", "doctor", "run"])).toBe(nearest);
});
