import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseEntry, renderEntry } from "../../../policy/entry.ts";

const accepted: readonly [row: string, text: string, canonical: string][] = [
  ["a host is open on 443", "Example.com", "example.com"],
  ["a host with a port", "example.com:8443", "example.com:8443"],
  ["ports in ascending order, each once", "example.com:8443,443,8443", "example.com:443,8443"],
  ["http:// means 80 and 443", "http://example.com", "example.com:80,443"],
  ["a wildcard with a port", "*.example.com:8443", "*.example.com:8443"],
  ["localhost with a port", "localhost:3000", "localhost:3000"],
  ["an address", "192.0.2.1", "192.0.2.1"],
  ["an address with a port", "192.0.2.1:5432", "192.0.2.1:5432"],
  ["a block with a port", "192.0.2.0/24:22", "192.0.2.0/24:22"],
  ["a private block is allowed when it is written out", "10.0.0.0/8", "10.0.0.0/8"],
  ["IPv6 with a port", "[2001:db8::1]:8443", "[2001:db8::1]:8443"],
  ["IPv6 with the default port", "[2001:db8::1]:443", "2001:db8::1"],
  ["bare IPv6", "2001:DB8::1", "2001:db8::1"],
  ["an IPv6 block with a port", "[2001:db8::/32]:22", "[2001:db8::/32]:22"],
  ["an IPv6 block with the prefix outside the brackets", "[2001:db8::]/32:22", "[2001:db8::/32]:22"],
  ["a port that is not TLS", "tcp://ssh.example.com:443", "tcp://ssh.example.com:443"],
  ["a mapped address is the IPv4 address", "[::ffff:192.0.2.1]:80", "192.0.2.1:80"],
];

const refusals: readonly [row: string, text: string, corrected: string][] = [
  ["https", "https://example.com", "write example.com"],
  ["http with a path", "http://example.com/x", "write http://example.com"],
  ["http with a port", "http://example.com:8080", "write example.com:8080"],
  ["tcp without a port", "tcp://ssh.example.com", ":PORT"],
  ["an empty port", "example.com:", "example.com:443"],
  ["port 0", "example.com:0", "example.com:443"],
  ["a port range", "example.com:1-2", "example.com:443"],
  ["every address", "0.0.0.0/0", "--full-network"],
  ["every IPv6 address", "::/0", "--full-network"],
  ["a block larger than /8", "8.0.0.0/7", "/8"],
  ["an IPv6 block larger than /19", "2600::/16", "/19"],
  ["a block that mixes public and private addresses", "172.0.0.0/8", "smaller blocks"],
  ["bits below the prefix", "192.0.2.1/24", "192.0.2.0/24"],
  ["hexadecimal IPv4", "0x7f.0.0.1:80", "127.0.0.1"],
  ["a user", "git@example.com", "write example.com"],
  ["a git address", "git@example.com:team/repo", "write example.com"],
];

describe("parseEntry", () => {
  test.each(accepted)("%s", (_row, text, canonical) => {
    const entry = parseEntry(text, "allowlist-file");
    expect(entry.ok && renderEntry(entry.value)).toBe(canonical);
  });

  test.each(refusals)("refuses %s", (_row, text, corrected) => {
    const entry = parseEntry(text, "allowlist-file");
    expect(!entry.ok && entry.complaint.fix).toContain(corrected);
  });

  test("tells TLS and HTTP ports from others", () => {
    const web = parseEntry("example.com", "list");
    const tcp = parseEntry("TCP://example.com:443", "list");
    expect([web.ok && web.value.protocol, tcp.ok && tcp.value.protocol]).toEqual(["web", "tcp"]);
  });

  test("parses its own text to the same entry", () => {
    const host = fc.oneof(fc.domain(), fc.domain().map((name) => `*.${name}`), fc.ipV4(), fc.ipV6().map((ip) => `[${ip}]`));
    const ports = fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom("", "tcp://"), host, ports, (scheme, name, list) => {
        const entry = parseEntry(`${scheme}${name}:${list.join(",")}`, "rules");
        fc.pre(entry.ok);
        const again = parseEntry(renderEntry(entry.value), "rules");
        expect(again.ok && again.value).toEqual(entry.value);
      }),
      { numRuns: 1000 },
    );
  });

  test("answers any text without throwing, and what it accepts can be written and read again", () => {
    const parts = fc.array(fc.constantFrom("a", ".com", "*", ".", ":", "443", ",", "/", "[", "]", "tcp://", "http://", "@", "1.2.3.4", "::1", " ", "\0"), { maxLength: 8 });
    fc.assert(
      fc.property(parts, (list) => {
        const entry = parseEntry(list.join(""), "rules");
        fc.pre(entry.ok);
        expect(parseEntry(renderEntry(entry.value), "rules")).toEqual(entry);
      }),
      { numRuns: 5000 },
    );
  });
});
