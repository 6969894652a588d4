import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:http2";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { ask, awaitAnswer, awaitClose } from "./http2-client.ts";
import { PREFACE, renderFrame, renderHead } from "./http2-frames.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startHttps, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

const MIB = 1024 * 1024;

/** A server that speaks HTTP/1.1 only, a proxy, and a client's session in HTTP/2. */
async function open(serve: (request: IncomingMessage, response: ServerResponse) => void) {
  const stack = new AsyncDisposableStack();
  const origin = stack.use(await startHttps(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", serve)));
  const target = `a.example:${origin.port}`;
  const rig = stack.use(await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } }));
  const session = stack.use(await openHttp2(rig, target, authorities));
  return { origin, target, rig, session, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const echo = (request: IncomingMessage, response: ServerResponse): void => {
  const { method, url, httpVersion, rawHeaders } = request;
  void text(request).then((body) => response.end(JSON.stringify({ method, url, httpVersion, rawHeaders, body, trailers: request.rawTrailers })));
};

describe("a server that speaks HTTP/1.1 only", () => {
  const rows: readonly { what: string; fields: readonly string[]; body?: string; method?: string; sent: readonly string[] }[] = [
    { what: "a GET without a body", fields: ["x-b", "2", "x-a", "1", "x-b", "3"], sent: ["x-b", "2", "x-a", "1", "x-b", "3"] },
    { what: "cookies, joined again", fields: ["cookie", "a=1", "cookie", "b=2"], sent: ["cookie", "a=1; b=2"] },
    { what: "a POST that tells its length", method: "POST", fields: ["content-length", "4"], body: "body", sent: ["content-length", "4"] },
    { what: "a POST that does not tell its length", method: "POST", fields: [], body: "body", sent: ["transfer-encoding", "chunked"] },
    { what: "a POST without a body", method: "POST", fields: [], sent: ["content-length", "0"] },
    { what: "a GET with a body", method: "GET", fields: [], body: "body", sent: ["transfer-encoding", "chunked"] },
    { what: "a method of somebody's own", method: "PURGE", fields: [], sent: ["content-length", "0"] },
    { what: "TE, which is for one connection", fields: ["te", "trailers", "x-a", "1"], sent: ["x-a", "1"] },
  ];
  test.each(rows)("gets $what", async ({ fields, body, method = "GET", sent }) => {
    await using opened = await open(echo);
    const { session, target } = opened;
    const told = await ask(session, [":method", method, ":path", "/p?q", ":scheme", "https", ":authority", target, ...fields], body);
    expect(JSON.parse(told.body)).toEqual({ method, url: "/p?q", httpVersion: "1.1", rawHeaders: ["host", target, ...sent, "Connection", "keep-alive"], body: body ?? "", trailers: [] });
  });

  test("gets trailers, and its own are handed on", async () => {
    await using opened = await open((request, response) => {
      request.resume().once("end", () => {
        response.writeHead(200, { trailer: "x-seen" });
        response.addTrailers({ "x-seen": request.rawTrailers.join("=") });
        response.end("answer");
      });
    });
    const stream = opened.session.request({ ":method": "POST" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "x-check": "abc" }));
    stream.end("message");
    const trailers = new Promise((resolve) => void stream.once("trailers", resolve));
    expect(await text(stream)).toBe("answer");
    expect(await trailers).toMatchObject({ "x-seen": "x-check=abc" });
  });

  test("answers with repeated fields, and what concerns its connection stays there", async () => {
    await using opened = await open((_request, response) => {
      response.writeHead(200, ["set-cookie", "a=1", "x-mine", "1", "set-cookie", "b=2", "connection", "keep-alive, x-mine", "keep-alive", "timeout=5", "content-length", "2"]);
      response.end("ok");
    });
    const { raw, body } = await ask(opened.session, { ":path": "/" });
    expect(raw.slice(0, 8)).toEqual([":status", "200", "set-cookie", "a=1", "set-cookie", "b=2", "content-length", "2"]);
    expect(raw).not.toContain("x-mine");
    expect(body).toBe("ok");
  });

  test.each([
    { what: "HEAD", method: "HEAD", status: 200 },
    { what: "204", method: "GET", status: 204 },
    { what: "304", method: "GET", status: 304 },
  ])("answers $what without a body", async ({ method, status }) => {
    await using opened = await open((_request, response) => response.writeHead(status, { "x-a": "1" }).end());
    expect(await ask(opened.session, { ":method": method })).toMatchObject({ status, body: "", headers: { "x-a": "1" } });
  });

  test("is asked for many things at once, and its connections are used again", async () => {
    await using opened = await open((request, response) => void setTimeout(() => response.end(request.url), 20));
    const many = async (): Promise<string[]> => (await Promise.all(Array.from({ length: 10 }, (_, index) => ask(opened.session, { ":path": `/${index}` })))).map(({ body }) => body);
    expect(await many()).toEqual(Array.from({ length: 10 }, (_, index) => `/${index}`));
    const before = opened.origin.connections();
    for (let round = 0; round < 5; round += 1) await ask(opened.session, { ":path": "/again" });
    expect(opened.origin.connections()).toBe(before);
  });

  test("that closed its idle connections is asked again on a new one", async () => {
    await using opened = await open((_request, response) => response.end("ok"));
    const { origin, session } = opened;
    expect((await ask(session, { ":path": "/" })).body).toBe("ok");
    origin.server.closeIdleConnections();
    expect((await ask(session, { ":path": "/" })).body).toBe("ok");
    expect(origin.connections()).toBe(2);
  });

  test("sends early hints and 100 (Continue)", async () => {
    await using opened = await open((request, response) => {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.writeContinue();
      void text(request).then((body) => response.end(body));
    });
    const stream = opened.session.request({ ":method": "POST", expect: "100-continue" }, { endStream: false });
    const heard: unknown[] = [];
    stream.on("headers", (headers) => heard.push(headers[":status"]));
    await new Promise<void>((resolve) => void stream.once("continue", resolve));
    stream.end("body");
    expect(await text(stream)).toBe("body");
    expect(heard).toContain(103);
  });

  test("sends events that arrive one by one", async () => {
    const served = Promise.withResolvers<ServerResponse>();
    await using opened = await open((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      served.resolve(response);
    });
    const stream = opened.session.request({ ":path": "/events" });
    await awaitAnswer(stream);
    for (const event of ["one", "two", "three"]) {
      const arrived = once(stream, "data");
      (await served.promise).write(`data: ${event}\n\n`);
      expect(String((await arrived)[0])).toBe(`data: ${event}\n\n`);
    }
  });

  test("gets 64 MiB intact", async () => {
    await using opened = await open((request, response) => {
      const hash = createHash("sha256");
      request.on("data", (bytes: Buffer) => hash.update(bytes));
      request.once("end", () => response.end(hash.digest("hex")));
    });
    const stream = opened.session.request({ ":method": "PUT" }, { endStream: false });
    const sent = createHash("sha256");
    for (let part = 0; part < 64; part += 1) {
      const bytes = randomBytes(MIB);
      sent.update(bytes);
      if (!stream.write(bytes)) await once(stream, "drain");
    }
    stream.end();
    expect(await text(stream)).toBe(sent.digest("hex"));
  });

  test("sees that an upload was given up, and takes it for no whole one", async () => {
    const ends: string[] = [];
    await using opened = await open((request) => {
      request.resume();
      request.once("end", () => ends.push("whole"));
      request.once("aborted", () => ends.push("aborted"));
      request.on("error", () => undefined);
    });
    const tls = await openTls(opened.rig, opened.target, authorities, ["h2"]);
    tls.write(Buffer.concat([PREFACE, renderHead(1, { method: "PUT", authority: opened.target, path: "/" }), renderFrame("data", 1, Buffer.from("half"))]));
    await once(opened.origin.server, "request");
    tls.write(renderFrame("reset", 1, Buffer.from([0, 0, 0, 8])));
    await expect.poll(() => ends).toEqual(["aborted"]);
  });

  test("answers ahead of the end of an upload and hangs up: the client hears the answer, and may stop then", async () => {
    await using opened = await open((_request, response) => {
      response.writeHead(413, { connection: "close" }).end("too large", () => response.socket?.destroySoon());
    });
    const stream = opened.session.request({ ":method": "PUT" }, { endStream: false });
    stream.on("error", () => undefined);
    stream.write("begun");
    expect((await awaitAnswer(stream)).status).toBe(413);
    expect(await text(stream)).toBe("too large");
    expect(await awaitClose(stream)).toBe(constants.NGHTTP2_NO_ERROR);
  });

  test.each([
    { what: "told of its length", head: "content-length: 100\r\n" },
    { what: "chunked", head: "transfer-encoding: chunked\r\n" },
  ])("breaks a response off that is $what: it is no whole one for the client", async ({ head }) => {
    await using opened = await open((request) => {
      request.socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n4\r\nhalf\r\n`);
      setTimeout(() => request.socket.destroy(), 50);
    });
    const stream = opened.session.request({ ":path": "/" });
    await awaitAnswer(stream);
    stream.resume();
    expect(await awaitClose(stream)).not.toBe(constants.NGHTTP2_NO_ERROR);
  });

  test.each([
    { what: "leaves before it answers", say: "", why: "its server ended the connection before its response was whole" },
    { what: "answers no HTTP", say: "SSH-2.0-OpenSSH\r\n", why: "its server ended the connection before its response was whole" },
    { what: "asks for a proxy's password", say: "HTTP/1.1 407 No\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n", why: "its server asks for a password for a proxy" },
  ])("that $what is a 502 with a sentence", async ({ say, why }) => {
    await using opened = await open(({ socket }) => socket.end(say));
    expect(await ask(opened.session, { ":path": "/" })).toMatchObject({ status: 502, body: `AgentBox let ${opened.target} through, but ${why}\n` });
  });
});
