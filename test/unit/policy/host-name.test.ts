import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseHost, parseHostName, parseHostPort, renderHost } from "../../../policy/host-name.ts";

const accepted: readonly [row: string, text: string, canonical: string][] = [
  ["keeps a plain name", "api.example.com", "api.example.com"],
  ["lowers the case", "API.Example.COM", "api.example.com"],
  ["removes one trailing dot", "example.com.", "example.com"],
  ["cuts blanks around the name", " \texample.com ", "example.com"],
  ["turns an international name into ASCII", "BÜCHER.example", "xn--bcher-kva.example"],
  ["maps full-width letters and dots", "ｅｘａｍｐｌｅ。com", "example.com"],
  ["keeps a valid A-label", "XN--BCHER-KVA.example", "xn--bcher-kva.example"],
  ["keeps underscores", "_dmarc.example.com", "_dmarc.example.com"],
  ["keeps a dotless name", "localhost", "localhost"],
  ["keeps a label of 63 bytes", `${"a".repeat(63)}.com`, `${"a".repeat(63)}.com`],
  ["reads four decimal numbers as an address", "192.0.2.1", "192.0.2.1"],
  ["removes the trailing dot of an address", "192.0.2.1.", "192.0.2.1"],
  ["reads IPv6 in brackets", "[2001:DB8:0::1]", "2001:db8::1"],
  ["reads bare IPv6", "2001:db8::1", "2001:db8::1"],
  ["cuts the zone of an IPv6 address", "[fe80::1%eth0]", "fe80::1"],
  ["reads an IPv4-mapped address as IPv4", "::ffff:192.0.2.1", "192.0.2.1"],
  ["reads an IPv4-mapped address in hexadecimal as IPv4", "[::ffff:c000:201]", "192.0.2.1"],
];

const refusedHosts: readonly [row: string, text: string][] = [
  ["an empty host", ""],
  ["a dot alone", "."],
  ["NUL", "a\0.com"],
  ["a line end, even at the end", "example.com\n"],
  ["a carriage return", "example.com\r"],
  ["a space inside", "exam ple.com"],
  ["a no-break space", "example.com\u00a0"],
  ["an invisible soft hyphen", "exam\u00adple.com"],
  ["a zero-width joiner", "exam\u200dple.com"],
  ["percent-encoding", "ex%61mple.com"],
  ["full-width percent-encoding", "ex％61mple.com"],
  ["an empty label in front", ".example.com"],
  ["an empty label inside", "a..com"],
  ["two trailing dots", "example.com.."],
  ["a label of 64 bytes", `${"a".repeat(64)}.com`],
  ["a name of 254 bytes", `${"a".repeat(62)}.`.repeat(4) + "aa"],
  ["a label with a leading hyphen", "-o.example.com"],
  ["a label with a trailing hyphen", "a-.example.com"],
  ["an A-label that decodes to nothing", "xn--a.com"],
  ["hexadecimal IPv4", "0x7f.0.0.1"],
  ["octal IPv4", "0177.0.0.1"],
  ["shortened IPv4", "127.1"],
  ["IPv4 as one number", "2130706433"],
  ["IPv4 in full-width digits", "１２７.0.0.1"],
  ["five numbers", "1.2.3.4.5"],
  ["an octet over 255", "256.1.1.1"],
  ["a last label that is a number", "example.1"],
  ["a wildcard", "*.example.com"],
  ["user info", "user@example.com"],
  ["a path", "example.com/x"],
  ["a backslash", "example.com\\x"],
  ["an unclosed bracket", "[::1"],
  ["IPv4 in brackets", "[192.0.2.1]"],
  ["a percent sign after the brackets", "[::1]%lo"],
];

describe("parseHost", () => {
  test.each(accepted)("%s", (_row, text, canonical) => {
    const host = parseHost(text);
    expect(host.ok && renderHost(host.value)).toBe(canonical);
  });

  test.each(refusedHosts)("refuses %s", (_row, text) => {
    expect(parseHost(text).ok).toBe(false);
  });

  test("tells which address a number form would have meant", () => {
    const host = parseHost("0x7f.1");
    expect(!host.ok && host.complaint.fix).toContain("127.0.0.1");
  });

  test("escapes control characters in the message", () => {
    const host = parseHost("a\u001b[31m.com");
    expect(!host.ok && host.complaint.what).toContain(String.raw`\u001b`);
  });

  test("gives the same result for its own canonical text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6(), fc.string({ unit: "grapheme" })), (text) => {
        const first = parseHost(text);
        fc.pre(first.ok);
        const again = parseHost(renderHost(first.value));
        expect(again.ok && again.value).toEqual(first.value);
      }),
      { numRuns: 2000 },
    );
  });

  test("judges a host name exactly as parseHostName does", () => {
    const parts = fc.array(fc.constantFrom("a", "z9", "-", ".", "_", "xn--", "xn--bcher-kva", "1", "0x", "A", "b".repeat(62), "é"), { maxLength: 7 });
    fc.assert(
      fc.property(parts, (list) => {
        const text = list.join("");
        const host = parseHost(text);
        fc.pre(!host.ok || host.value.kind === "name");
        const name = parseHostName(text);
        expect(host.ok ? renderHost(host.value) : "refused").toBe(name.ok ? name.value : "refused");
      }),
      { numRuns: 20_000 },
    );
  });

  test("lets nothing through that is not a plain lower-case name", () => {
    const nasty = fc.array(fc.constantFrom("a", "B", ".", "-", "*", "%", "2e", "@", "/", "\0", " ", "。", "ü", "\u00ad", "1", "0x", "xn--", "["), { maxLength: 12 });
    fc.assert(
      fc.property(nasty, (parts) => {
        const name = parseHostName(parts.join(""));
        fc.pre(name.ok);
        expect(name.value).toMatch(/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/);
        expect(name.value.length).toBeLessThanOrEqual(253);
      }),
      { numRuns: 5000 },
    );
  });
});

describe("parseHostPort", () => {
  const rows: readonly [row: string, text: string, host: string, port: number | undefined][] = [
    ["splits a port off a name", "example.com:8443", "example.com", 8443],
    ["splits a port off an IPv4 address", "192.0.2.1:80", "192.0.2.1", 80],
    ["splits a port off IPv6 in brackets", "[::1]:80", "::1", 80],
    ["takes bare IPv6 as a whole", "2001:db8::443", "2001:db8::443", undefined],
    ["takes a host without a port", "example.com", "example.com", undefined],
  ];
  test.each(rows)("%s", (_row, text, host, port) => {
    const result = parseHostPort(text);
    expect(result.ok && { host: renderHost(result.value.host), port: result.value.port }).toEqual({ host, port });
  });

  test.each(["example.com:", "example.com:0", "example.com:65536", "example.com:080", "example.com:4 43", "example.com:+443", "[::1]x:80", ":443"])("refuses %j", (text) => {
    expect(parseHostPort(text).ok).toBe(false);
  });
});
