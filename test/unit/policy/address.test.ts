import { isIPv4, isIPv6 } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseAddress, parseRange, rangeContains, rangeCovers, rangesOverlap, type Address, type Range } from "../../../policy/address.ts";

function address(text: string): Address {
  const result = parseAddress(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

function range(text: string): Range {
  const result = parseRange(text);
  if (!result.ok) throw new Error(result.complaint.what);
  return result.value;
}

describe("parseAddress", () => {
  test.each([
    ["shortens IPv6 as RFC 5952 says", "2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["reads the dotted tail of an IPv4-compatible address", "::192.0.2.1", "::c000:201"],
    ["turns a mapped address into IPv4", "::FFFF:192.0.2.1", "192.0.2.1"],
    ["keeps the unspecified address", "::", "::"],
  ])("%s", (_row, text, canonical) => {
    expect(address(text).text).toBe(canonical);
  });

  test.each(["010.0.0.1", "1.2.3", "1.2.3.4 ", "0x1.2.3.4", "::ffff:010.1.1.1", "::1%lo", "1::2::3", "12345::", "1:2:3:4:5:6:7", "", "::1.2.3.4:5"])("refuses %j", (text) => {
    expect(parseAddress(text).ok).toBe(false);
  });

  test("accepts exactly what inet_pton accepts", () => {
    const parts = fc.array(fc.constantFrom("0", "1", "255", "256", "01", "ffff", "a", ":", "::", ".", "/"), { maxLength: 15 });
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), parts.map((list) => list.join(""))), (text) => {
        expect(parseAddress(text).ok).toBe(isIPv4(text) || isIPv6(text));
      }),
      { numRuns: 5000 },
    );
  });
});

describe("parseRange", () => {
  const refusals: readonly [row: string, text: string, fix: string][] = [
    ["bits below the prefix, with the block meant", "192.0.2.7/24", "192.0.2.0/24"],
    ["a prefix over 32", "192.0.2.0/33", "192.0.2.0/32"],
    ["a prefix with a leading zero", "192.0.2.0/024", "192.0.2.0/32"],
    ["an IPv4 block written as IPv6", "::ffff:192.0.2.0/120", "192.0.2.0/24"],
  ];
  test.each(refusals)("refuses %s", (_row, text, fix) => {
    const result = parseRange(text);
    expect(!result.ok && result.complaint.fix).toContain(fix);
  });

  test("is contained, covered and overlapped as CIDR arithmetic says", () => {
    expect(rangeContains(range("192.0.2.0/24"), address("192.0.2.255"))).toBe(true);
    expect(rangeContains(range("192.0.2.0/24"), address("192.0.3.0"))).toBe(false);
    expect(rangeContains(range("::/0"), address("192.0.2.1"))).toBe(false);
    expect(rangeCovers(range("10.0.0.0/8"), range("10.1.0.0/16"))).toBe(true);
    expect(rangeCovers(range("10.1.0.0/16"), range("10.0.0.0/8"))).toBe(false);
    expect(rangesOverlap(range("10.1.0.0/16"), range("10.0.0.0/8"))).toBe(true);
    expect(rangesOverlap(range("10.0.0.0/8"), range("11.0.0.0/8"))).toBe(false);
  });

  test("writes what it reads back", () => {
    const text = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })).map(([ip, prefix]) => `${ip}/${prefix}`);
    fc.assert(
      fc.property(text, (written) => {
        const result = parseRange(written);
        const canonical = result.ok ? result.value.text : (/write (\S+),/.exec(result.complaint.fix ?? "")?.[1] ?? "");
        expect(range(canonical).text).toBe(canonical);
      }),
    );
  });
});
