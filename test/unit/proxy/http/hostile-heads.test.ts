import { describe, expect, test } from "vitest";
import { BodyFraming } from "../../../../proxy/http/body-framing.ts";
import { writeRequestHead, writeResponseHead } from "../../../../proxy/http/head-writer.ts";
import { MALFORMED } from "../../../../proxy/http/message-head.ts";
import { makeRandom, mutate, pick, type Random } from "./random.ts";
import { describeHead, readRequest, readResponse } from "./read-head.ts";

const CASES = 100_000;

const FIELDS = ["Host: a.example.com\r\n", "Host: a.example.com\r\n", "host: a.example.com:80\r\n", "Content-Length: 5\r\n", "Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "Connection: x-a, keep-alive\r\n", "X-A: 1\r\n", "Upgrade: websocket\r\n", "Connection: Upgrade\r\n", "Proxy-Authorization: Basic eA==\r\n", "Expect: 100-continue\r\n", "TE: trailers\r\n", " folded\r\n", "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"] as const;

function makeFields(random: Random): string {
  return Array.from({ length: random(5) }, () => pick(random, FIELDS)).join("");
}

function makeRequest(random: Random): string {
  const method = pick(random, ["GET", "GET", "POST", "HEAD", "OPTIONS", "CONNECT", "get", "PRI"]);
  const target = pick(random, ["/", "/x?y=1", "http://a.example.com/", "http://a.example.com", "HTTP://A.example.com:80/x", "a.example.com:443", "*", "https://a.example.com/", "http://u@a.example.com/", "unix:/x"]);
  return mutate(random, `${method} ${target} ${pick(random, ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0"])}\r\n${makeFields(random)}\r\n`);
}

function makeEnds(random: Random, length: number): number[] {
  return Array.from({ length: random(4) }, () => random(length + 1)).toSorted((a, b) => a - b);
}

/** What no head may hold that goes on: another end of a line, or a control character. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const FORBIDDEN = /\r(?!\n)|(?<!\r)\n|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

describe("hostile heads", () => {
  test(`${CASES} requests: the same however they are split, and what goes on is one request that means the same`, () => {
    const random = makeRandom(20_261_101);
    const wrong: string[] = [];
    let accepted = 0;
    for (let count = 0; count < CASES; count += 1) {
      const text = makeRequest(random);
      const whole = readRequest(text);
      const split = readRequest(text, makeEnds(random, text.length));
      if (JSON.stringify(describeHead(split)) !== JSON.stringify(describeHead(whole))) wrong.push(text);
      if (whole.length <= 0 || whole.head.form === "authority" || whole.head.form === "socket") continue;
      accepted += 1;
      const { head, length } = whole;
      const written = writeRequestHead(head, Buffer.from(text, "latin1"), 0, length, { authority: "a.example.com", proxy: undefined }).toString("latin1");
      const again = readRequest(written);
      const [sent, was] = [[again.head.contentLength, again.head.chunked, again.length, again.head.minor, again.head.isUpgrade], [head.contentLength, head.chunked, written.length, head.minor, head.isUpgrade]];
      const named = written.slice(again.head.host.start, again.head.host.end);
      if (JSON.stringify(sent) !== JSON.stringify(was) || named !== "a.example.com" || FORBIDDEN.test(written)) wrong.push(`${text} became ${written}`);
    }
    expect(wrong).toEqual([]);
    expect(accepted).toBeGreaterThan(CASES / 20);
  });

  test(`${CASES} responses: the same however they are split, and what goes on is one response that means the same`, () => {
    const random = makeRandom(20_261_102);
    const wrong: string[] = [];
    let accepted = 0;
    for (let count = 0; count < CASES; count += 1) {
      const text = mutate(random, `${pick(random, ["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2"])} ${pick(random, ["200 OK", "204 No Content", "304 Not Modified", "100 Continue", "101 Switching Protocols", "404"])}\r\n${makeFields(random)}\r\n`);
      const whole = readResponse(text);
      const split = readResponse(text, makeEnds(random, text.length));
      if (JSON.stringify(describeHead(split)) !== JSON.stringify(describeHead(whole))) wrong.push(text);
      if (whole.length <= 0) continue;
      accepted += 1;
      const { head, length } = whole;
      const written = writeResponseHead(head, Buffer.from(text, "latin1"), 0, length, { closes: false, extra: 0 }).toString("latin1");
      const again = readResponse(written);
      const [sent, was] = [[again.head.status, again.head.contentLength, again.head.chunked, again.length], [head.status, head.contentLength, head.chunked, written.length]];
      if (JSON.stringify(sent) !== JSON.stringify(was) || FORBIDDEN.test(written)) wrong.push(`${text} became ${written}`);
    }
    expect(wrong).toEqual([]);
    expect(accepted).toBeGreaterThan(CASES / 20);
  });

  test(`${CASES} chunked bodies: the same end however they are split, and never one inside a chunk`, () => {
    const random = makeRandom(20_261_103);
    const wrong: string[] = [];
    let ends = 0;
    for (let count = 0; count < CASES; count += 1) {
      const chunks = Array.from({ length: random(4) }, () => pick(random, ["5\r\nhello\r\n", "5;x=y\r\n0\r\n\r\n\r\n", "a\r\n0123456789\r\n"])).join("");
      const text = mutate(random, `${chunks}0\r\n${pick(random, ["", "X-Sum: 1\r\n", "Content-Length: 1\r\n"])}\r\n`) + pick(random, ["", "GET / HTTP/1.1\r\n\r\n"]);
      const [whole, split] = [followChunks(text, []), followChunks(text, makeEnds(random, text.length))];
      if (whole !== split) wrong.push(text);
      if (whole <= 0) continue;
      ends += 1;
      if (!/^(?:0+(?:[ \t]*;[^\r\n]*)?\r\n|[^]*\r\n0+(?:[ \t]*;[^\r\n]*)?\r\n)(?:[^\r\n:]+:[^\r\n]*\r\n)*\r\n$/.test(text.slice(0, whole))) wrong.push(`${text} at ${whole}`);
    }
    expect(wrong).toEqual([]);
    expect(ends).toBeGreaterThan(CASES / 20);
  });
});

/** Where the body ends; 0 where that is not to be seen yet. */
function followChunks(text: string, ends: readonly number[]): number {
  const framing = new BodyFraming();
  framing.begin(-1, true);
  const bytes = Buffer.from(text, "latin1");
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    const at = framing.take(bytes, from, end);
    if (at < 0) return MALFORMED;
    if (framing.done) return at;
    from = at;
  }
  return 0;
}
