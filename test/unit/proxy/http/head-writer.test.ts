import { describe, expect, test } from "vitest";
import { type Host, parseHost } from "../../../../policy/host-name.ts";
import { renderAuthority, writeRequestHead, writeResponseHead } from "../../../../proxy/http/head-writer.ts";
import { readRequest, readResponse } from "./read-head.ts";

const AUTHORITY = "a.example.com";

/** The head as it goes on, whatever lies before it in the buffer. */
function rewrite(text: string, proxy?: { authorization: string }): string {
  const { head, length, complaint } = readRequest(text);
  expect(complaint).toBe("");
  return writeRequestHead(head, Buffer.from(`before${text}after`, "latin1"), 6, length, { authority: AUTHORITY, proxy }).toString("latin1");
}

function rewriteResponse(text: string, closes = false): string {
  const { head, length, complaint } = readResponse(text);
  expect(complaint).toBe("");
  return writeResponseHead(head, Buffer.from(`before${text}body`, "latin1"), 6, length, { closes, extra: 4 }).toString("latin1");
}

describe("a request goes on", () => {
  const host = "Host: a.example.com\r\n";
  const rows: readonly [row: string, text: string, expected: string][] = [
    ["as it came, where nothing concerns this connection", `GET /x HTTP/1.1\r\n${host}X-a:  1\t\r\nx-A: \u00e9\r\n\r\n`, `GET /x HTTP/1.1\r\n${host}X-a:  1\t\r\nx-A: \u00e9\r\n\r\n`],
    ["with its path alone", `GET http://a.example.com/x?y=/ HTTP/1.1\r\n${host}\r\n`, `GET /x?y=/ HTTP/1.1\r\n${host}\r\n`],
    ["with / where it has no path", `GET http://a.example.com HTTP/1.1\r\n${host}\r\n`, `GET / HTTP/1.1\r\n${host}\r\n`],
    ["with / ahead of a query alone", `GET http://a.example.com?x HTTP/1.1\r\n${host}\r\n`, `GET /?x HTTP/1.1\r\n${host}\r\n`],
    ["with * for OPTIONS without a path (RFC 9112 3.2.4)", `OPTIONS http://a.example.com HTTP/1.1\r\n${host}\r\n`, `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
    ["with its * for OPTIONS", `OPTIONS * HTTP/1.1\r\n${host}\r\n`, `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
    ["with a canonical Host in the same place", "GET / HTTP/1.1\r\nX-A: 1\r\nhOsT:\t A.EXAMPLE.com.:80 \r\nX-B: 2\r\n\r\n", "GET / HTTP/1.1\r\nX-A: 1\r\nhOsT:\t a.example.com \r\nX-B: 2\r\n\r\n"],
    ["with a Host where it had none", "GET http://a.example.com/ HTTP/1.0\r\nX-A: 1\r\n\r\n", `GET / HTTP/1.0\r\n${host}X-A: 1\r\n\r\n`],
    ["without what Connection names (RFC 9110 7.6.1)", `GET / HTTP/1.1\r\nX-Hop: 1\r\n${host}Connection: close, x-hop\r\nX-HOP: 2\r\nX-End: 3\r\n\r\n`, `GET / HTTP/1.1\r\n${host}X-End: 3\r\n\r\n`],
    ["without fields for the proxy", `GET / HTTP/1.1\r\n${host}Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nproxy-x: 1\r\nProxy: 2\r\n\r\n`, `GET / HTTP/1.1\r\n${host}Proxy: 2\r\n\r\n`],
    ["without Keep-Alive, TE and an upgrade that is none", `GET / HTTP/1.1\r\nKeep-Alive: 5\r\nTE: trailers\r\n${host}Upgrade: h2c\r\n\r\n`, `GET / HTTP/1.1\r\n${host}\r\n`],
    ["with the fields of a body", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\nExpect: 100-continue\r\n\r\n`, `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\nExpect: 100-continue\r\n\r\n`],
    ["with its upgrade to WebSocket", `GET / HTTP/1.1\r\n${host}Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n\r\n`, `GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${host}Sec-WebSocket-Key: x\r\n\r\n`],
    ["without the empty line ahead", `\r\nGET / HTTP/1.1\r\n${host}\r\n`, `GET / HTTP/1.1\r\n${host}\r\n`],
    ["without anything that tells of the client or the proxy", `GET / HTTP/1.1\r\n${host}Via: 1.1 x\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n`, `GET / HTTP/1.1\r\n${host}Via: 1.1 x\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n`],
  ];
  test.each(rows)("%s", (_row, text, expected) => {
    expect(rewrite(text)).toBe(expected);
  });

  const proxied: readonly [row: string, text: string, target: string][] = [
    ["with the whole URI", "GET /x HTTP/1.1", "GET http://a.example.com/x HTTP/1.1"],
    ["with the whole URI again", "GET http://A.example.com:80/x HTTP/1.1", "GET http://a.example.com/x HTTP/1.1"],
    ["with a path, where it has none", "GET http://a.example.com HTTP/1.1", "GET http://a.example.com/ HTTP/1.1"],
    ["with a path, where it has a query alone", "GET http://a.example.com?x HTTP/1.1", "GET http://a.example.com/?x HTTP/1.1"],
    ["without a path for OPTIONS of the server", "OPTIONS * HTTP/1.1", "OPTIONS http://a.example.com HTTP/1.1"],
  ];
  test.each(proxied)("to the site's proxy %s", (_row, line, target) => {
    const authorization = "Proxy-Authorization: Basic dTpw\r\n";
    expect(rewrite(`${line}\r\n${host}Proxy-Authorization: Basic bWluZQ==\r\n\r\n`, { authorization })).toBe(`${target}\r\n${authorization}${host}\r\n`);
  });
});

describe("to the site's proxy TRACE", () => {
  test("carries no password, since it comes back (RFC 9110 9.3.8)", () => {
    expect(rewrite("TRACE /x HTTP/1.1\r\nHost: a.example.com\r\n\r\n", { authorization: "Proxy-Authorization: Basic dTpw\r\n" })).toBe("TRACE http://a.example.com/x HTTP/1.1\r\nHost: a.example.com\r\n\r\n");
  });
});

describe("a response goes on", () => {
  const rows: readonly [row: string, text: string, closes: boolean, expected: string][] = [
    ["as it came", "HTTP/1.1 200 OK\r\nX-a: 1\r\n\r\n", false, "HTTP/1.1 200 OK\r\nX-a: 1\r\n\r\nbody"],
    ["with the word that the connection ends", "HTTP/1.1 200 OK\r\nX-a: 1\r\n\r\n", true, "HTTP/1.1 200 OK\r\nX-a: 1\r\nConnection: close\r\n\r\nbody"],
    ["in the proxy's version (RFC 9112 2.3)", "HTTP/1.0 200 OK\r\nX-a: 1\r\n\r\n", true, "HTTP/1.1 200 OK\r\nX-a: 1\r\nConnection: close\r\n\r\nbody"],
    ["without the fields of its connection", "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-a\r\nKeep-Alive: timeout=5\r\nX-a: 1\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-b: 2\r\n\r\n", false, "HTTP/1.1 200 OK\r\nX-b: 2\r\n\r\nbody"],
    ["with its upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-b: 2\r\n\r\n", false, "HTTP/1.1 101 Switching Protocols\r\nX-b: 2\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbody"],
  ];
  test.each(rows)("%s", (_row, text, closes, expected) => {
    expect(rewriteResponse(text, closes)).toBe(expected);
  });
});

describe("an authority", () => {
  const rows: readonly [host: string, port: number, scheme: "http" | "https", expected: string][] = [
    ["a.example.com", 80, "http", "a.example.com"],
    ["a.example.com", 443, "http", "a.example.com:443"],
    ["a.example.com", 443, "https", "a.example.com"],
    ["a.example.com", 80, "https", "a.example.com:80"],
    ["2001:db8::1", 80, "http", "[2001:db8::1]"],
    ["2001:db8::1", 8080, "http", "[2001:db8::1]:8080"],
    ["127.0.0.1", 80, "http", "127.0.0.1"],
  ];
  test.each(rows)("of %s and %d by %s", (text, port, scheme, expected) => {
    const host = parseHost(text);
    const value: Host = host.ok ? host.value : { kind: "name", name: "" };
    expect(renderAuthority(value, port, scheme)).toBe(expected);
  });
});
