import { describe, expect, test } from "vitest";
import { parsePathPattern } from "../../../policy/sandbox-pattern.ts";

describe("a pattern of paths", () => {
  test.each([
    { name: "names, one after the other", text: "src/a.ts", parts: ["src", "a.ts"], absolute: false },
    { name: "an absolute one", text: "/etc/hosts", parts: ["etc", "hosts"], absolute: true },
    { name: "any number of names", text: "src/**", parts: ["src", "**"], absolute: false },
    { name: "two of those in a row as one", text: "**/**/x", parts: ["**", "x"], absolute: false },
    { name: "wildcards inside a name", text: "*.te?t", parts: [["*", ".te", "?", "t"]], absolute: false },
    { name: "a name of Unicode in its composed form", text: "Gro\u0308ße", parts: ["Größe"], absolute: false },
    { name: "an escaped character as itself", text: String.raw`app/\[id\]/\*`, parts: ["app", "[id]", "*"], absolute: false },
    { name: "an exclamation mark inside a name as itself", text: "a!", parts: ["a!"], absolute: false },
    { name: "an emoji after ? as one character", text: "?\u{1f600}", parts: [["?", "\u{1f600}"]], absolute: false },
    { name: "%2e%2e as a plain name", text: "%2e%2e/x", parts: ["%2e%2e", "x"], absolute: false },
  ])("takes $name", ({ text, parts, absolute }) => {
    const pattern = parsePathPattern(text);
    expect(pattern).toMatchObject({ ok: true, value: { absolute } });
    const shown = pattern.ok ? pattern.value.parts.map((part) => (part.kind === "deep" ? "**" : part.kind === "name" ? part.name : part.tokens.map((token) => (token === "star" ? "*" : token === "any" ? "?" : token.text)))) : [];
    expect(shown).toEqual(parts);
  });

  test.each([
    { name: "nothing", text: "", said: /is empty/ },
    { name: "the root alone", text: "/", said: /write "\/\*\*"/ },
    { name: "..", text: "a/../b", said: /holds "\.\."/ },
    { name: ".", text: "./a", said: /holds "\."/ },
    { name: "an empty name", text: "a//b", said: /two slashes/ },
    { name: "a slash at the end, with what is meant", text: "secrets/", said: /write "secrets\/\*\*"/ },
    { name: "** glued to a name", text: "a**/b", said: /\*\* beside other characters/ },
    { name: "three stars", text: "***", said: /\*\* beside other characters/ },
    { name: "a set, which would be a plain name", text: "*.{pem,key}", said: /holds "\{".*one rule for each/ },
    { name: "a class, which would be a plain name", text: "[ab].ts", said: /holds "\["/ },
    { name: "a negation", text: "!src/**", said: /begins with !/ },
    { name: "a home directory", text: "~/x", said: /begins with ~/ },
    { name: "an escape that means nothing", text: String.raw`a\b`, said: /backslash before "b"/ },
    { name: "a backslash at the end", text: "a\\", said: /ends a name with a backslash/ },
    { name: "NUL", text: "a\0b", said: /control character/ },
    { name: "half of a character", text: "a\ud800", said: /control character, or half of one/ },
    { name: "far too much", text: "a/".repeat(3000), said: /more than 4096/ },
  ])("refuses $name", ({ text, said }) => {
    const pattern = parsePathPattern(text);
    expect(pattern.ok ? "" : `${pattern.complaint.what}; ${pattern.complaint.fix}`).toMatch(said);
  });
});
