import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldName } from "../../../policy/sandbox-name.ts";
import { isHiddenName, judgeOwnName } from "../../../sandbox/hidden-name.ts";
import { parsePathText } from "../../../sandbox/path-text.ts";

describe("hidden names", () => {
  test.each([
    ".git", ".ssh", ".env", ".env.local", ".agentbox", ".GIT", "...", "GIT~1", "git~2", "SSH~1",
    "\u200c.git", ".g\u200cit", "\ufeff.ssh", "lost+found", "LOST+FOUND", "$RECYCLE.BIN", "System Volume Information", "Thumbs.db",
  ])("%s is hidden", (name) => {
    expect(isHiddenName(name)).toBe(true);
  });

  test.each(["git", "node_modules", "src", "a.env", "file~1", "notes~", "digit~1x", "Lost and Found", "é", "．env", "~", "-rf", "CON"])("%s is not hidden", (name) => {
    expect(isHiddenName(name)).toBe(false);
  });
});

describe("the guard's own names", () => {
  test.each([
    [".agentbox-trash", "never"],
    [".AgentBox-trash", "never"],
    [".agentbox-0123456789abcdef01234567", "never"],
    [".agent\u200dbox-trash", "never"],
    [".agentbox", "read-only"],
    [".AGENTBOX", "read-only"],
    ["AGENTB~1", "read-only"],
    ["agentbox", undefined],
    ["agentbox-trash", undefined],
    ["my.agentbox", undefined],
  ])("%s is for a session: %s", (name, verdict) => {
    expect(judgeOwnName(name)).toBe(verdict);
  });
});

describe("folding", () => {
  test.each([
    ["README.md", "readme.MD"],
    ["straße", "STRASSE"],
    ["straße", "STRA\u1e9eE"],
    ["\u212a", "k"],
    ["ſ", "S"],
    ["caf\u00e9", "CAFE\u0301"],
  ])("%s and %s are one name", (one, other) => {
    expect(foldName(one)).toBe(foldName(other));
  });

  test("folding twice changes nothing", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (name) => {
        expect(foldName(foldName(name))).toBe(foldName(name));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ["a", "b"],
    ["e", "\u00e9"],
    [".git", "git"],
  ])("%s and %s stay two names", (one, other) => {
    expect(foldName(one)).not.toBe(foldName(other));
  });
});

describe("the text of a path", () => {
  test.each([
    ["/a/b", ["a", "b"], false],
    ["/a//b/", ["a", "b"], true],
    ["/a/./b/.", ["a", "b"], true],
    ["/a/../b", ["a", "..", "b"], false],
    ["/%2e%2e/\\..", ["%2e%2e", "\\.."], false],
    ["/...", ["..."], false],
    ["/", [], true],
  ])("%s is taken apart and not resolved", (path, components, isDirectory) => {
    expect(parsePathText(path)).toEqual({ components, isDirectory });
  });

  test("a name keeps its normal form and its case", () => {
    expect(parsePathText("/caf\u00e9/CAFE\u0301").components).toEqual(["caf\u00e9", "CAFE\u0301"]);
  });

  test("a name of 255 bytes and a path of 4095 bytes are the longest", () => {
    expect(parsePathText(`/${"n".repeat(255)}`).components).toHaveLength(1);
    expect(parsePathText("/abcdefghijklmn".repeat(273)).components).toHaveLength(273);
    expect(() => parsePathText(`/${"abcdefghijklmn/".repeat(273)}n`)).toThrow("longer than 4095 bytes");
  });
});
