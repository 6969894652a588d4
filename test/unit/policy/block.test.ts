import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { blocksHost, matchesGlob, parseBlock, removesEntry, renderBlock, type Block } from "../../../policy/block.ts";
import { parseEntry } from "../../../policy/entry.ts";
import { parseHost } from "../../../policy/host-name.ts";

function block(text: string): Block {
  const result = parseBlock(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

function blocks(text: string, host: string): boolean {
  const parsed = parseHost(host);
  return parsed.ok && blocksHost(block(text), parsed.value);
}

describe("parseBlock", () => {
  test.each([
    ["a name", "ChatGPT.com", "chatgpt.com"],
    ["*.x as **.x, since it denies the apex too", "*.openai.com", "**.openai.com"],
    ["a whole top-level domain, since denying is safe", "*.ru", "**.ru"],
    ["a dotless name", "db", "db"],
    ["a glob in the middle", "api.*.com", "api.*.com"],
    ["a glob glued to a name", "*telemetry*", "*telemetry*"],
    ["a block of addresses", "10.0.0.0/8", "10.0.0.0/8"],
    ["a block that no allow entry may be", "0.0.0.0/0", "0.0.0.0/0"],
    ["numbers of an address in front of a *, as a block", "10.0.*", "10.0.0.0/16"],
    ["the same with a star for each number", "192.168.1.*", "192.168.1.0/24"],
    ["one number", "10.*.*.*", "10.0.0.0/8"],
    ["groups of IPv6", "2001:db8:*", "2001:db8::/32"],
    ["everything", "*", "*"],
  ])("reads %s", (_row, text, canonical) => {
    expect(renderBlock(block(text))).toBe(canonical);
  });

  test.each([
    ["ports", "chatgpt.com:443", "write chatgpt.com"],
    ["a URL", "https://chatgpt.com/x", "write chatgpt.com"],
    ["an empty entry", "", "remove it"],
    ["a part of a number of an address", "10.1*", "CIDR block"],
    ["a star in front of a number", "*.0.0.1", "CIDR block"],
    ["a star between numbers", "10.*.0.1", "CIDR block"],
    ["too many numbers", "10.0.0.0.*", "CIDR block"],
    ["a number over 255", "300.*", "CIDR block"],
    ["digits and stars alone", "*1*", "CIDR block"],
    ["a part of a group of IPv6", "2001:db*", "CIDR block"],
    ["a shortened IPv6 address with a star", "2001:db8::*", "CIDR block"],
  ])("refuses %s", (_row, text, corrected) => {
    const result = parseBlock(text);
    expect(!result.ok && result.complaint.fix).toContain(corrected);
  });
});

describe("blocksHost", () => {
  test.each([
    ["*.x denies the apex", "*.openai.com", "openai.com", true],
    ["*.x denies below", "*.openai.com", "a.b.openai.com", true],
    ["*.x does not deny a name that only ends alike", "*.openai.com", "notopenai.com", false],
    ["a glob matches any characters, dots too", "api.*.com", "api.a.b.com", true],
    ["a glob does not match another beginning", "api.*.com", "xapi.a.com", false],
    ["* denies addresses too", "*", "192.0.2.1", true],
    ["a range denies its addresses", "192.0.2.0/24", "192.0.2.9", true],
    ["a range denies mapped addresses", "192.0.2.0/24", "[::ffff:192.0.2.9]", true],
    ["a glob denies no address by its digits", "*1.com*", "11.0.0.1", false],
    ["a glob with hexadecimal letters denies no address", "*a*", "2a00::1", false],
    ["that glob denies names", "*a*", "a.com", true],
    ["a name pattern denies no address", "*.openai.com", "192.0.2.1", false],
  ])("%s", (_row, text, host, denied) => {
    expect(blocks(text, host)).toBe(denied);
  });
});

describe("removesEntry", () => {
  test.each([
    ["the same name", "chatgpt.com", "chatgpt.com:443,8443", true],
    ["all matching entries", "*.openai.com", "auth.openai.com", true],
    ["a wildcard entry below", "*.openai.com", "*.chat.openai.com", true],
    ["not a wildcard that is wider", "chat.openai.com", "*.openai.com", false],
    ["a smaller block of addresses", "10.0.0.0/8", "10.1.0.0/16:22", true],
    ["not a larger block of addresses", "10.1.0.0/16", "10.0.0.0/8", false],
    ["no block of addresses by a glob over names", "*a*", "[2a00::/19]:22", false],
    ["every block of addresses by *", "*", "[2a00::/19]:22", true],
    ["a wildcard that a glob covers", "*openai*", "**.openai.com", true],
  ])("removes %s", (_row, text, entryText, removed) => {
    const entry = parseEntry(entryText, "allowlist-file");
    expect(entry.ok && removesEntry(block(text), entry.value)).toBe(removed);
  });
});

describe("matchesGlob", () => {
  test("equals the regular expression it stands for", () => {
    const text = fc.stringMatching(/^[ab.]{0,10}$/);
    const glob = fc.stringMatching(/^[ab.*]{0,8}$/);
    fc.assert(
      fc.property(glob, text, (g, t) => {
        const pattern = new RegExp(`^${g.replaceAll(".", String.raw`\.`).replaceAll("*", ".*")}$`);
        expect(matchesGlob(g, t)).toBe(pattern.test(t));
      }),
      { numRuns: 3000 },
    );
  });

  test("takes no exponential time on a hostile pair", () => {
    const started = process.cpuUsage().user;
    expect(matchesGlob("*a".repeat(100), "a".repeat(99) + "b".repeat(150))).toBe(false);
    // An exponential search would not end within the test's time limit at all.
    expect(process.cpuUsage().user - started).toBeGreaterThanOrEqual(0);
  });
});
