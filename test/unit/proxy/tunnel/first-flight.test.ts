import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readFirstFlight } from "../../../../proxy/tunnel/first-flight.ts";
import { makeHello } from "../../../lab/client-hello.ts";

const read = (text: string) => readFirstFlight(Buffer.from(text, "latin1"));

describe("the first bytes of a tunnel", () => {
  test.for([
    { what: "a request", first: "GET / HTTP/1.1\r\n" },
    { what: "a request of a method that nobody knows", first: "BREW /pot HTTP/1.1\r\n" },
    { what: "a request with an absolute URI", first: "GET http://a.example.com/ HTTP/1.1\r\n" },
    { what: "a request in small letters", first: "get / http/1.1\r\n" },
    { what: "a request with line ends of LF only", first: "POST / HTTP/1.0\nHost: b.example.com\n" },
    { what: "a request behind empty lines", first: "\r\n\r\n\nGET / HTTP/1.1\r\n" },
    { what: "a request behind blanks", first: " \t\v\fGET / HTTP/1.1\r\n" },
    { what: "a request with tabs between its words", first: "GET\t/\tHTTP/1.1\r\n" },
    { what: "a request with other blanks between its words", first: "GET\v/\fHTTP/1.1\r\n" },
    { what: "a request with a bare CR inside", first: "GET\r/ HTTP/1.1\r\n" },
    { what: "a request with bytes above ASCII", first: "GET /\u00fc HTTP/1.1\r\n" },
    { what: "a request with control characters", first: "GET /\u0001 HTTP/1.1\r\n" },
    { what: "a request with words too many", first: "GET / x y HTTP/1.1\r\n" },
    { what: "a request with a version that does not exist", first: "GET / HTTP/9\r\n" },
    { what: "a request of HTTP/0.9, which names no host at all", first: "GET /\r\n" },
    { what: "a request of HTTP/0.9 for a URI", first: "GET http://b.example.com/\r\n" },
    { what: "a line without an end", first: `GET /${"a".repeat(5000)}` },
  ])("are HTTP: $what", ({ first }) => {
    expect(read(first)).toEqual({ kind: "http" });
  });

  test.for([
    { what: "SSH", first: "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" },
    { what: "a greeting of mail", first: "EHLO box.example.com\r\n" },
    { what: "git's own protocol, without a line end", first: "0033git-upload-pack /project.git\0host=a.example.com\0" },
    { what: "a store's command", first: "*1\r\n$4\r\nPING\r\n" },
    { what: "a word without anything behind it", first: "PING\r\n" },
    { what: "an option of a stream, which is no HTTP", first: "OPTIONS rtsp://a.example.com/x RTSP/1.0\r\n" },
    { what: "a call", first: "INVITE sip:a@example.com SIP/2.0\r\n" },
    { what: "a cache's command", first: "get key\r\n" },
    { what: "XML", first: "<?xml version='1.0'?><stream:stream>" },
    { what: "a message queue", first: "AMQP\0\0\u0009\u0001" },
    { what: "binary numbers", first: "\u0010\u0020\u0000\u0004MQTT" },
    { what: "a telnet negotiation", first: "\u00ff\u00fd\u0001" },
  ])("are something other: $what", ({ first }) => {
    expect(read(first)).toEqual({ kind: "other" });
  });

  test("are the preface of HTTP/2", () => {
    expect(read("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).toEqual({ kind: "http2" });
  });

  test("are a hello, or one that is malformed", () => {
    expect(readFirstFlight(makeHello())).toMatchObject({ kind: "hello", sni: "a.example.com" });
    expect(read("\u0015\u0003\u0001\u0000\u0002\u0001\u0000")).toMatchObject({ kind: "malformed" });
  });

  test.for(["GET / HTTP/1.1\r\n", "\r\nBREW /pot HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "GET /index.html\r\n", "post http://x/ HTTP/1.0\n"])("are told only when the line is whole: %j", (line) => {
    for (let length = 1; length < line.length; length += 1) expect(read(line.slice(0, length))).toEqual({ kind: "need-more", bytes: length + 1, harmless: true });
    expect(read(line).kind).toMatch(/^http2?$/);
  });

  test("of a hello must not go on before it is whole", () => {
    const hello = makeHello();
    expect(readFirstFlight(hello.subarray(0, 1))).toEqual({ kind: "need-more", bytes: 2, harmless: false });
    expect(readFirstFlight(hello.subarray(0, 40))).toEqual({ kind: "need-more", bytes: hello.length, harmless: false });
  });
});

/** A reader of requests that forgives as much as any server does: the version anywhere, or a known method and a path. */
function couldBeRequest(line: string): boolean {
  const words = line.split(/[ \t\v\f\r]+/).filter((word) => word !== "");
  return words.length > 1 && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(words[0] ?? "") && (/HTTP\//i.test(words.slice(1).join(" ")) || (/^(?:GET|HEAD|POST|PUT)$/i.test(words[0] ?? "") && (words[1] ?? "").startsWith("/")));
}

describe("any bytes", () => {
  test("of 100,000 damaged requests are never passed on unread where a server could serve them", () => {
    const word = fc.constantFrom("GET", "get", "POST", "PRI", "FOO", "/", "/a", "*", "http://x/", "HTTP/1.1", "HTTP/2.0", "http/1.0", "HTTP/", "\r", "\t", " ", "  ", "\v", "\n", "\r\n", "\u0000", "\u00ff", ":", "(", "x", "");
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), fc.nat(40), (words, cut) => {
        const text = words.join("");
        const input = text.slice(0, text.length - (cut > 30 ? 1 : 0));
        const flight = read(input);
        const [, line = "", end] = /^[ \t\v\f\r\n]*([^\n]*)(\n)?/.exec(input) ?? [];
        const isPassedOn = flight.kind === "other" && end !== undefined && !line.includes("\0");
        expect(isPassedOn && couldBeRequest(line)).toBe(false);
        expect(flight.kind !== "need-more" || flight.bytes > input.length).toBe(true);
      }),
      { numRuns: 100_000, seed: 9112 },
    );
  });

  test("at all get an answer, and the same one whatever follows it", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.uint8Array({ maxLength: 20 }), (first, more) => {
        const { kind } = readFirstFlight(Buffer.from(first));
        const later = readFirstFlight(Buffer.from([...first, ...more])).kind;
        expect(kind === "need-more" || kind === "malformed" || later === kind).toBe(true);
      }),
      { numRuns: 20_000, seed: 9113 },
    );
  });
});
