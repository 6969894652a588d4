import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { escapeUnseen, quote, quotePath } from "../../../policy/parsed.ts";

const rows: { name: string; text: string; quoted: string }[] = [
  { name: "plain words stay, letters of other scripts too", text: "/home/Ä/日本 x", quoted: '"/home/Ä/日本 x"' },
  { name: "control characters of the first set are escaped", text: "a\u{1b}[2Jb\n\t", quoted: String.raw`"a\u001b[2Jb\n\t"` },
  { name: "control characters of the second set are escaped", text: "\u{9b}2J\u{7f}", quoted: String.raw`"\u009b2J\u007f"` },
  { name: "marks that turn the direction are escaped", text: "\u{202e}gnp.exe\u{2066}\u{200f}", quoted: String.raw`"\u202egnp.exe\u2066\u200f"` },
  { name: "line separators are escaped", text: "\u{2028}\u{2029}\u{85}", quoted: String.raw`"\u2028\u2029\u0085"` },
  { name: "unseen characters beyond the first plane are escaped as JSON does", text: "\u{e0041}", quoted: String.raw`"\udb40\udc41"` },
];

describe("a path in a message", () => {
  test.each(rows)("$name", ({ text, quoted }) => {
    expect(quotePath(text)).toBe(quoted);
    expect(quote(text)).toBe(quoted);
    expect(JSON.parse(quoted)).toBe(text);
  });

  test("is never shortened, while a word is", () => {
    expect(quotePath("x".repeat(4096))).toHaveLength(4098);
    expect(quote("x".repeat(4096))).toHaveLength(82);
  });
});

describe("a text for a terminal", () => {
  test("keeps its line ends and tabs and nothing else that a terminal would obey", () => {
    expect(escapeUnseen("a\n\tb\r\u{1b}]0;x\u{7}")).toBe(String.raw`a` + "\n\tb" + String.raw`\u000d\u001b]0;x\u0007`);
  });

  test("never holds a control character, and JSON means the same afterwards", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const json = JSON.stringify({ text });
        expect(JSON.parse(escapeUnseen(json))).toEqual({ text });
        expect(escapeUnseen(text)).not.toMatch(/[^\P{Cc}\n\t]|[\p{Cf}\u{2028}\u{2029}]/u);
      }),
    );
  });
});
