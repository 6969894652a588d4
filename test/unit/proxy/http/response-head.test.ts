import { describe, expect, test } from "vitest";
import { describeHead, everyByte, readResponse } from "./read-head.ts";

const OK = "HTTP/1.1 200 OK\r\n";

function read(text: string): ReturnType<typeof readResponse> {
  const whole = readResponse(text);
  expect(describeHead(readResponse(text, everyByte(text)))).toEqual(describeHead(whole));
  return whole;
}

describe("accepts", () => {
  const rows: readonly [row: string, text: string, status: number][] = [
    ["a status and its words (RFC 9112 4)", `${OK}\r\n`, 200],
    ["a status without words", "HTTP/1.1 200 \r\n\r\n", 200],
    ["a status without the blank behind it", "HTTP/1.1 200\r\n\r\n", 200],
    ["words above ASCII", "HTTP/1.1 200 d\u00e9j\u00e0 vu\r\n\r\n", 200],
    ["HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n", 200],
    ["a status that nobody knows", "HTTP/1.1 999 Request denied\r\n\r\n", 999],
    ["204 that says it has no body", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204],
    ["304 with the length that it would have (RFC 9110 8.6)", "HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n", 304],
  ];
  test.each(rows)("%s", (_row, text, status) => {
    const { length, complaint, head } = read(text);
    expect({ length, complaint, status: head.status }).toEqual({ length: text.length, complaint: "", status });
  });
});

describe("refuses", () => {
  const rows: readonly [row: string, text: string, complaint: string][] = [
    ["both length fields (RFC 9112 6.3)", `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`, "both"],
    ["two lengths", `${OK}Content-Length: 3\r\nContent-Length: 3\r\n\r\n`, "several Content-Length"],
    ["another coding", `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`, "not chunked"],
    ["chunked in HTTP/1.0 (6.1)", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0 knows no"],
    ["204 with a length (6.1)", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", "204 has no body"],
    ["204 that is chunked", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "204 has no body"],
    ["100 with a length", "HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\n", "100 has no body"],
    ["a folded line (5.2)", `${OK}X: 1\r\n 2\r\n\r\n`, "folded"],
    ["a LF alone", `${OK}X: 1\n\r\n`, "LF"],
    ["a blank before the colon", `${OK}Content-Length : 3\r\n\r\n`, "blank before a colon"],
    ["another protocol", "SSH-2.0-x\r\n\r\n", "not HTTP/1"],
    ["ICY", "ICY 200 OK\r\n\r\n", "not HTTP/1"],
    ["HTTP/2", "HTTP/2 200 OK\r\n\r\n", "not HTTP/1"],
    ["HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", "version"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "status"],
    ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "status"],
    ["a status below 100", "HTTP/1.1 099 OK\r\n\r\n", "status"],
    ["a status of letters", "HTTP/1.1 2xx OK\r\n\r\n", "status"],
    ["a NUL in the words", "HTTP/1.1 200 O\u0000K\r\n\r\n", "NUL"],
    ["an empty line ahead", `\r\n${OK}\r\n`, "not HTTP/1"],
    ["a head over 64 KiB", `${OK}X: ${"x".repeat(66_000)}\r\n\r\n`, "larger than"],
  ];
  test.each(rows)("%s", (_row, text, complaint) => {
    expect(read(text).complaint).toContain(complaint);
  });
});
