import { describe, expect, test } from "vitest";
import { BodyFraming } from "../../../../proxy/http/body-framing.ts";

type Body = { length: number; chunked: boolean };
const CHUNKED: Body = { length: -1, chunked: true };

/** Where the body ends, -1 for malformed, and whether it is whole. */
function follow(body: Body, text: string, step: number): { end: number; done: boolean } {
  const framing = new BodyFraming();
  framing.begin(body.length, body.chunked);
  const bytes = Buffer.from(text, "latin1");
  let end = 0;
  for (let at = 0; at < bytes.length && end === at && !framing.done; at += step) {
    end = framing.take(bytes, at, Math.min(at + step, bytes.length));
    if (end < 0) return { end, done: false };
  }
  return { end, done: framing.done };
}

function followBoth(body: Body, text: string): { end: number; done: boolean } {
  const whole = follow(body, text, text.length);
  expect(follow(body, text, 1)).toEqual(whole);
  return whole;
}

describe("finds the end of", () => {
  const rows: readonly [row: string, body: Body, text: string, rest: string][] = [
    ["a body of a length (RFC 9112 6.2)", { length: 5, chunked: false }, "hello", "GET"],
    ["a chunked body (7.1)", CHUNKED, "5\r\nhello\r\n0\r\n\r\n", "GET"],
    ["several chunks", CHUNKED, "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n", "GET"],
    ["a chunked body without any chunk", CHUNKED, "0\r\n\r\n", "0\r\n\r\n"],
    ["sizes in both cases and with zeros", CHUNKED, "0a\r\n0123456789\r\n0A\r\n0123456789\r\n00\r\n\r\n", ""],
    ["chunks with extensions (7.1.1)", CHUNKED, '5;a=b;c="d e"\r\nhello\r\n0;last\r\n\r\n', "x"],
    ["blanks ahead of an extension", CHUNKED, "5 \t;a=b\r\nhello\r\n0\r\n\r\n", "x"],
    ["trailers (7.1.2)", CHUNKED, "5\r\nhello\r\n0\r\nX-Sum: 1\r\nExpires: never\r\n\r\n", "GET"],
    ["data that looks like an end", CHUNKED, "b\r\n0\r\n\r\n0\r\n\r\n1\r\n0\r\n\r\n", "x"],
  ];
  test.each(rows)("%s", (_row, body, text, rest) => {
    expect(followBoth(body, text + rest)).toEqual({ end: text.length, done: true });
  });

  test("a body that is not whole yet", () => {
    expect(followBoth(CHUNKED, "5\r\nhell").done).toBe(false);
    expect(followBoth({ length: 5, chunked: false }, "hell").done).toBe(false);
  });

  test("a body that only the connection ends (6.3)", () => {
    expect(followBoth({ length: -1, chunked: false }, "0\r\n\r\n")).toEqual({ end: 5, done: false });
  });
});

describe("refuses", () => {
  const rows: readonly [row: string, text: string][] = [
    ["an empty size", "\r\nhello\r\n"],
    ["a size with a sign", "+5\r\nhello\r\n"],
    ["a size with a prefix", "0x5\r\nhello\r\n"],
    ["a size that overflows", "10000000000000005\r\nhello\r\n"],
    ["a size with too many zeros", "00000000000005\r\nhello\r\n"],
    ["a blank behind a size", "5 \r\nhello\r\n"],
    ["a blank ahead of a size", " 5\r\nhello\r\n"],
    ["a LF that ends a size (2.2)", "5\nhello\r\n"],
    ["a CR that ends a size", "5\rhello\r\n"],
    ["a LF in an extension", "5;a\nb\r\nhello\r\n"],
    ["a CR in an extension", "5;a\rb\r\nhello\r\n"],
    ["a NUL in an extension", "5;a\u0000\r\nhello\r\n"],
    ["extensions without end", `5;${"a".repeat(17_000)}\r\nhello\r\n`],
    ["many small extensions", "1;aaaaaaaaaaaaaaaa\r\nx\r\n".repeat(1100)],
    ["a chunk that is longer than its size", "5\r\nhello!\r\n0\r\n\r\n"],
    ["a chunk that is shorter than its size", "5\r\nhell\r\n0\r\n\r\n"],
    ["a chunk that another byte ends", "5\r\nhello!\n0\r\n\r\n"],
    ["a chunk that a LF ends", "5\r\nhello\n0\r\n\r\n"],
    ["a LF that ends the body", "0\r\n\n"],
    ["a trailer that is folded (5.2)", "0\r\nX: 1\r\n 2\r\n\r\n"],
    ["a trailer without a name", "0\r\n: 1\r\n\r\n"],
    ["a trailer with a blank before its colon", "0\r\nX : 1\r\n\r\n"],
    ["a trailer that a LF ends", "0\r\nX: 1\n\r\n"],
    ["a request in place of a trailer", "0\r\nGET / HTTP/1.1\r\n\r\n"],
    ["Content-Length in a trailer (RFC 9110 6.5.1)", "0\r\nContent-Length: 5\r\n\r\n"],
    ["Transfer-Encoding in a trailer", "0\r\ntransfer-ENCODING: chunked\r\n\r\n"],
    ["Host in a trailer", "0\r\nHost: b.example.com\r\n\r\n"],
    ["trailers without end", `0\r\n${"X: 1\r\n".repeat(3000)}\r\n`],
  ];
  test.each(rows)("%s", (_row, text) => {
    expect(followBoth(CHUNKED, text)).toEqual({ end: -1, done: false });
  });
});
