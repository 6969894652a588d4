import { describe, expect, test } from "vitest";
import { describeHead, everyByte, readRequest } from "./read-head.ts";

const HOST = "Host: a.example.com\r\n";
const GET = `GET /path?q=1 HTTP/1.1\r\n${HOST}`;
const POST = `POST / HTTP/1.1\r\n${HOST}`;

/** Every row is read whole and byte by byte: where the segments end must not matter. */
function read(text: string): ReturnType<typeof readRequest> {
  const whole = readRequest(text);
  expect(describeHead(readRequest(text, everyByte(text)))).toEqual(describeHead(whole));
  return whole;
}

describe("accepts", () => {
  const rows: readonly [row: string, text: string][] = [
    ["a path (RFC 9112 3.2.1)", `${GET}\r\n`],
    ["a whole URI (3.2.2)", `GET http://a.example.com/path HTTP/1.1\r\n${HOST}\r\n`],
    ["a whole URI with a port", "GET http://a.example.com:8080/ HTTP/1.1\r\nHost: a.example.com:8080\r\n\r\n"],
    ["a whole URI without a path", `GET http://a.example.com HTTP/1.1\r\n${HOST}\r\n`],
    ["a whole URI with a query and no path", `GET http://a.example.com?q HTTP/1.1\r\n${HOST}\r\n`],
    ["a scheme in capitals (RFC 3986 3.1)", `GET HTTP://a.example.com/ HTTP/1.1\r\n${HOST}\r\n`],
    ["an IPv6 address", "GET http://[2001:db8::1]:8080/ HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n"],
    ["host and port for CONNECT (3.2.3)", "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n"],
    ["CONNECT that says it has no body", "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\nContent-Length: 0\r\n\r\n"],
    ["an asterisk for OPTIONS (3.2.4)", `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`],
    ["HTTP/1.0 without Host (3.2)", "GET http://a.example.com/ HTTP/1.0\r\n\r\n"],
    ["an invented method (RFC 9110 9.1)", `M-SEARCH!x / HTTP/1.1\r\n${HOST}\r\n`],
    ["a method of 32 bytes", `${"M".repeat(32)} / HTTP/1.1\r\n${HOST}\r\n`],
    ["an empty line ahead (RFC 9112 2.2)", `\r\n${GET}\r\n`],
    ["a field without a value (RFC 9110 5.5)", `${GET}X-Empty:\r\n\r\n`],
    ["blanks around a value (5.5)", `${GET}X-A: \t b \t\r\n\r\n`],
    ["bytes above ASCII in a value (5.5)", `${GET}X-A: \u00e9\u00ff\r\n\r\n`],
    ["every sign of a token in a name (5.6.2)", `${GET}!#$%&'*+-.^_\`|~09azAZ: 1\r\n\r\n`],
    ["a body of a length (RFC 9112 6.2)", `${POST}Content-Length: 12\r\n\r\n`],
    ["a length of 15 digits", `${POST}Content-Length: 999999999999999\r\n\r\n`],
    ["a chunked body, in whatever case (6.1)", `${POST}Transfer-Encoding: ChunKed\r\n\r\n`],
    ["several fields of Connection (RFC 9110 5.3)", `${GET}Connection: a,, b\r\nConnection: close\r\n\r\n`],
    ["a head of 64 KiB", `${GET}X: ${"x".repeat(65_536 - GET.length - 7)}\r\n\r\n`],
  ];
  test.each(rows)("%s", (_row, text) => {
    const { complaint, length } = read(text);
    expect({ complaint, length }).toEqual({ complaint: "", length: text.length });
  });
});

describe("refuses", () => {
  const both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n";
  const rows: readonly [row: string, text: string, complaint: string][] = [
    ["both length fields (RFC 9112 6.1)", `${POST}${both}\r\n`, "both Content-Length and Transfer-Encoding"],
    ["two lengths that differ (6.3)", `${POST}Content-Length: 3\r\nContent-Length: 4\r\n\r\n`, "several Content-Length"],
    ["two lengths that agree", `${POST}Content-Length: 3\r\nContent-Length: 3\r\n\r\n`, "several Content-Length"],
    ["a list of lengths", `${POST}Content-Length: 3, 3\r\n\r\n`, "Content-Length is no length"],
    ["a length with a sign", `${POST}Content-Length: +3\r\n\r\n`, "Content-Length is no length"],
    ["a negative length", `${POST}Content-Length: -3\r\n\r\n`, "Content-Length is no length"],
    ["a hexadecimal length", `${POST}Content-Length: 0x3\r\n\r\n`, "Content-Length is no length"],
    ["a length with a fraction", `${POST}Content-Length: 3.0\r\n\r\n`, "Content-Length is no length"],
    ["a length with a blank inside", `${POST}Content-Length: 1 2\r\n\r\n`, "Content-Length is no length"],
    ["an empty length", `${POST}Content-Length: \r\n\r\n`, "Content-Length is no length"],
    ["a length that is no exact number", `${POST}Content-Length: 9007199254740993\r\n\r\n`, "Content-Length is no length"],
    ["another coding than chunked (6.1)", `${POST}Transfer-Encoding: gzip\r\n\r\n`, "not chunked"],
    ["a second coding", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n`, "not chunked"],
    ["chunked twice", `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n`, "not chunked"],
    ["chunked in two fields", `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`, "several Transfer-Encoding"],
    ["identity", `${POST}Transfer-Encoding: identity\r\n\r\n`, "not chunked"],
    ["chunked with a vertical tab", `${POST}Transfer-Encoding: \u000bchunked\r\n\r\n`, "byte 0x0b"],
    ["chunked with a parameter", `${POST}Transfer-Encoding: chunked;q=1\r\n\r\n`, "not chunked"],
    ["an empty coding", `${POST}Transfer-Encoding:\r\n\r\n`, "not chunked"],
    ["chunked in HTTP/1.0 (6.1)", `POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`, "HTTP/1.0 knows no"],
    ["a folded line (5.2)", `${GET}X-A: 1\r\n 2\r\n\r\n`, "folded"],
    ["a line folded by a tab", `${GET}X-A: 1\r\n\t2\r\n\r\n`, "folded"],
    ["a first field that is folded", `GET / HTTP/1.1\r\n ${HOST}\r\n`, "folded"],
    ["a LF that ends a field (2.2)", `${GET}X-A: 1\nX-B: 2\r\n\r\n`, "LF"],
    ["a LF that ends the head", `${GET}X-A: 1\r\n\n`, "LF"],
    ["LF in place of every CR LF", "GET / HTTP/1.1\nHost: a.example.com\n\n", "first line"],
    ["a CR in a value (2.2)", `${GET}X-A: 1\r2\r\n\r\n`, "CR"],
    ["a CR at the end of a value", `${GET}X-A: 1\r\r\n\r\n`, "CR"],
    ["a CR in place of the last line", `${GET}\rX\r\n\r\n`, "CR"],
    ["a NUL in a value (RFC 9110 5.5)", `${GET}X-A: 1\u00002\r\n\r\n`, "NUL"],
    ["a NUL in a name", `${GET}X\u0000A: 1\r\n\r\n`, "NUL"],
    ["a control character in a value", `${GET}X-A: \u001b[1m\r\n\r\n`, "byte 0x1b"],
    ["DEL in a value", `${GET}X-A: \u007f\r\n\r\n`, "byte 0x7f"],
    ["a blank before the colon (RFC 9112 5.1)", `${POST}Content-Length : 3\r\n\r\n`, "blank before a colon"],
    ["a tab before the colon", `${POST}Content-Length\t: 3\r\n\r\n`, "blank before a colon"],
    ["a blank in a name", `${GET}X A: 1\r\n\r\n`, "blank before a colon"],
    ["a field without a name", `${GET}: 1\r\n\r\n`, "without a name"],
    ["a field without a colon", `${GET}X-A\r\n\r\n`, "CR"],
    ["a name with a byte above ASCII", `${GET}X-\u00e9: 1\r\n\r\n`, "byte 0xe9"],
    ["a name with a bracket", `${GET}X(A): 1\r\n\r\n`, "byte 0x28"],
    ["two Hosts that agree (3.2)", `${GET}${HOST}\r\n`, "several Host"],
    ["two Hosts that differ", `${GET}host: b.example.com\r\n\r\n`, "several Host"],
    ["no Host in HTTP/1.1 (3.2)", "GET http://a.example.com/ HTTP/1.1\r\n\r\n", "no Host"],
    ["an empty Host", "GET / HTTP/1.1\r\nHost: \r\n\r\n", "Host is no host"],
    ["a Host with a path", "GET / HTTP/1.1\r\nHost: a.example.com/x\r\n\r\n", "Host is no host"],
    ["a Host with a user", "GET / HTTP/1.1\r\nHost: u@a.example.com\r\n\r\n", "Host is no host"],
    ["a Host with a scheme", "GET / HTTP/1.1\r\nHost: http://a.example.com\r\n\r\n", "Host is no host"],
    ["a list of Hosts", "GET / HTTP/1.1\r\nHost: a.example.com, b.example.com\r\n\r\n", "Host is no host"],
    ["two Hosts in one field", "GET / HTTP/1.1\r\nHost: a.example.com b.example.com\r\n\r\n", "Host is no host"],
    ["a Host with a percent sign", "GET / HTTP/1.1\r\nHost: a%2eexample.com\r\n\r\n", "Host is no host"],
    ["a Host above ASCII", "GET / HTTP/1.1\r\nHost: \u00e4.example.com\r\n\r\n", "Host is no host"],
    ["a Host with an empty port", "GET / HTTP/1.1\r\nHost: a.example.com:\r\n\r\n", "Host is no host"],
    ["a Host with port 0", "GET / HTTP/1.1\r\nHost: a.example.com:0\r\n\r\n", "Host is no host"],
    ["a Host with a port of zeros", "GET / HTTP/1.1\r\nHost: a.example.com:080\r\n\r\n", "Host is no host"],
    ["a Host with port 65536", "GET / HTTP/1.1\r\nHost: a.example.com:65536\r\n\r\n", "Host is no host"],
    ["a Host with two ports", "GET / HTTP/1.1\r\nHost: a.example.com:80:81\r\n\r\n", "Host is no host"],
    ["a Host that is an open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "Host is no host"],
    ["a Host with a zone", "GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", "Host is no host"],
    ["user and password in the URI (RFC 9110 4.2.4)", `GET http://u:p@a.example.com/ HTTP/1.1\r\n${HOST}\r\n`, "host of its target"],
    ["a URI that hides its host behind a backslash", `GET http://b.example.com\\@a.example.com/ HTTP/1.1\r\n${HOST}\r\n`, "host of its target"],
    ["a URI with an encoded host", `GET http://a%2eexample.com/ HTTP/1.1\r\n${HOST}\r\n`, "host of its target"],
    ["a URI without a host", `GET http:///path HTTP/1.1\r\n${HOST}\r\n`, "host of its target"],
    ["a URI with an empty port", `GET http://a.example.com:/ HTTP/1.1\r\n${HOST}\r\n`, "host of its target"],
    ["a scheme with one slash", `GET http:/a.example.com/ HTTP/1.1\r\n${HOST}\r\n`, "neither a path nor"],
    ["a fragment (RFC 9112 3.2)", `GET /path#part HTTP/1.1\r\n${HOST}\r\n`, "fragment"],
    ["another scheme", `GET ftp://a.example.com/ HTTP/1.1\r\n${HOST}\r\n`, "neither a path nor"],
    ["a target above ASCII", `GET /\u00e4 HTTP/1.1\r\n${HOST}\r\n`, "byte 0xe4"],
    ["a target with a control character", `GET /\u0001 HTTP/1.1\r\n${HOST}\r\n`, "byte 0x01"],
    ["a target with a tab", `GET /\tx HTTP/1.1\r\n${HOST}\r\n`, "byte 0x09"],
    ["no target", `GET  HTTP/1.1\r\n${HOST}\r\n`, "target is none"],
    ["two blanks ahead of the target (3)", `GET  / HTTP/1.1\r\n${HOST}\r\n`, "target is none"],
    ["two blanks ahead of the version", `GET /  HTTP/1.1\r\n${HOST}\r\n`, "version"],
    ["a blank ahead of the method", ` GET / HTTP/1.1\r\n${HOST}\r\n`, "method is none"],
    ["a method that is no token", `G(T / HTTP/1.1\r\n${HOST}\r\n`, "method is none"],
    ["a method of 33 bytes", `${"M".repeat(33)} / HTTP/1.1\r\n${HOST}\r\n`, "method is too long"],
    ["a TLS hello", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000", "byte 0x16"],
    ["HTTP/0.9 (2.3)", "GET /\r\n", "target is none"],
    ["HTTP/2.0", `PRI * HTTP/2.0\r\n\r\n`, "version"],
    ["HTTP/1.2", `GET / HTTP/1.2\r\n${HOST}\r\n`, "version"],
    ["HTTP/1.10", `GET / HTTP/1.10\r\n${HOST}\r\n`, "first line"],
    ["http in small letters", `GET / http/1.1\r\n${HOST}\r\n`, "version"],
    ["words behind the version", `GET / HTTP/1.1 x\r\n${HOST}\r\n`, "first line"],
    ["two empty lines ahead", `\r\n\r\n${GET}\r\n`, "method is none"],
    ["CONNECT without a port (3.2.3)", "CONNECT a.example.com HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "not host:port"],
    ["CONNECT with a path", "CONNECT a.example.com:443/ HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n", "not host:port"],
    ["CONNECT with a URI", "CONNECT http://a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n", "not host:port"],
    ["CONNECT with a body (RFC 9110 9.3.6)", "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\nContent-Length: 1\r\n\r\n", "no body"],
    ["host and port for another method", `GET a.example.com:443 HTTP/1.1\r\n${HOST}\r\n`, "neither a path nor"],
    ["an asterisk for another method (3.2.4)", `GET * HTTP/1.1\r\n${HOST}\r\n`, "OPTIONS only"],
    ["Connection that names Content-Length (RFC 9110 7.6.1)", `${POST}Connection: Content-Length\r\nContent-Length: 3\r\n\r\n`, "names content-length"],
    ["Connection that names Transfer-Encoding", `${POST}Connection: close, transfer-encoding\r\n\r\n`, "names transfer-encoding"],
    ["Connection that names Host", `${GET}Connection: host\r\n\r\n`, "names host"],
    ["Connection that is no list of names", `${GET}Connection: a b\r\n\r\n`, "no list of names"],
    ["a head over 64 KiB", `${GET}X: ${"x".repeat(65_537 - GET.length - 7)}\r\n\r\n`, "larger than"],
    ["a target over 64 KiB", `GET /${"x".repeat(66_000)} HTTP/1.1\r\n${HOST}\r\n`, "larger than"],
  ];
  test.each(rows)("%s", (_row, text, complaint) => {
    expect(read(text).complaint).toContain(complaint);
  });
});

describe("reads", () => {
  test("the parts of a whole URI", () => {
    const text = "POST HTTP://A.example.com:8080?q=1 HTTP/1.1\r\nHost: A.example.com:8080\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    const { head } = read(text);
    const part = (start: number, end: number): string => text.slice(start, end);
    expect({
      method: part(head.methodStart, head.methodEnd),
      form: head.form,
      scheme: head.scheme,
      host: part(head.authority.start, head.authority.hostEnd),
      port: head.authority.port,
      path: part(head.pathStart, head.targetEnd),
      named: part(head.host.start, head.host.end),
      length: head.contentLength,
      expectsContinue: head.expectsContinue,
    }).toEqual({ method: "POST", form: "absolute", scheme: "http", host: "A.example.com", port: 8080, path: "?q=1", named: "A.example.com:8080", length: 5, expectsContinue: true });
  });

  const upgrades: readonly [row: string, fields: string, isUpgrade: boolean][] = [
    ["WebSocket, in whatever case", "Connection: keep-alive, UPGRADE\r\nUpgrade: WebSocket\r\n", true],
    ["no upgrade that Connection does not ask for", "Upgrade: websocket\r\n", false],
    ["no upgrade to HTTP/2: its names could not be judged", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n", false],
    ["no upgrade to TLS", "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", false],
    ["no upgrade where several are offered", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", false],
    ["no upgrade where several fields offer it", "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n", false],
  ];
  test.each(upgrades)("%s", (_row, fields, isUpgrade) => {
    expect(read(`${GET}${fields}\r\n`).head.isUpgrade).toBe(isUpgrade);
  });

  test("no upgrade of what is no GET, or has a body", () => {
    const fields = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    expect(read(`${POST}${fields}\r\n`).head.isUpgrade).toBe(false);
    expect(read(`${GET}${fields}Content-Length: 1\r\n\r\n`).head.isUpgrade).toBe(false);
    expect(read(`${GET}${fields}Content-Length: 0\r\n\r\n`).head.isUpgrade).toBe(true);
  });

  test("one request after the other with the same object", () => {
    const { head } = readRequest(`${POST}Connection: close, x-a\r\nX-A: 1\r\nContent-Length: 5\r\n\r\n`);
    expect({ cuts: head.cuts.length, length: head.contentLength, wantsClose: head.wantsClose }).toEqual({ cuts: 4, length: 5, wantsClose: true });
    head.reset();
    const next = Buffer.from(`${GET}\r\n`);
    expect(head.parse(next, 0, next.length)).toBe(next.length);
    expect({ cuts: head.cuts.length, length: head.contentLength, wantsClose: head.wantsClose }).toEqual({ cuts: 0, length: -1, wantsClose: false });
  });
});
