import { constants, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { ask, awaitAnswer, awaitClose } from "./http2-client.ts";
import { PREFACE, renderHead } from "./http2-frames.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startHttp2, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

/** A server, a proxy that lets its name through, and a client's session. */
async function open(serve: (server: Http2SecureServer) => void) {
  const stack = new AsyncDisposableStack();
  const origin = stack.use(await startHttp2(await authorities.issuer.contextFor("a.example"), serve));
  const target = `a.example:${origin.port}`;
  const rig = stack.use(await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } }));
  const session = stack.use(await openHttp2(rig, target, authorities));
  return { origin, target, rig, session, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const onStream = (act: (stream: ServerHttp2Stream, raw: readonly string[]) => void) => (server: Http2SecureServer) => void server.on("stream", (stream: ServerHttp2Stream, _headers: unknown, _flags: number, raw: string[]) => {
  stream.on("error", () => undefined);
  act(stream, raw);
});

describe("requests by HTTP/2 that end early", () => {
  test("a client that gives up a request ends it at the server, and no other", async () => {
    const codes: number[] = [];
    await using opened = await open(onStream((stream) => {
      stream.once("close", () => codes.push(stream.rstCode));
      stream.respond({ ":status": 200 });
      stream.write("begun");
    }));
    const [kept, given] = [opened.session.request({ ":path": "/kept" }), opened.session.request({ ":path": "/given" })];
    await Promise.all([awaitAnswer(kept), awaitAnswer(given)]);
    given.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => codes).toEqual([constants.NGHTTP2_CANCEL]);
    expect(kept.closed).toBe(false);
    await expect.poll(() => opened.rig.context.flows.size).toBe(2);
  });

  test.each([constants.NGHTTP2_REFUSED_STREAM, constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_HTTP_1_1_REQUIRED])("a server's reset with code %i reaches the client as it is", async (code) => {
    await using opened = await open(onStream((stream) => stream.close(code)));
    const stream = opened.session.request({ ":path": "/" });
    expect(await awaitClose(stream)).toBe(code);
  });

  test("a response that breaks off is no whole one for the client", async () => {
    await using opened = await open(onStream((stream) => {
      stream.respond({ ":status": 200 });
      stream.write("half");
      setTimeout(() => stream.session?.destroy(), 50);
    }));
    const stream = opened.session.request({ ":path": "/" });
    await awaitAnswer(stream);
    stream.resume();
    expect(await awaitClose(stream)).not.toBe(constants.NGHTTP2_NO_ERROR);
    // The client's own connection goes on.
    expect(opened.session.destroyed).toBe(false);
  });

  test("a server that leaves before it answers is a 502 with a sentence, and the next request finds a new connection", async () => {
    let requests = 0;
    await using opened = await open(onStream((stream) => {
      requests += 1;
      if (requests === 1) stream.session?.destroy();
      else stream.respond({ ":status": 200 }, { endStream: true });
    }));
    const told = await ask(opened.session, { ":path": "/" });
    expect(told).toMatchObject({ status: 502, body: expect.stringMatching(/^AgentBox let a\.example:\d+ through, but its server ended the connection before its response was whole\n$/) });
    expect((await ask(opened.session, { ":path": "/" })).status).toBe(200);
    expect(opened.origin.connections()).toBe(2);
  });

  test("a server that says goodbye ends what it has begun, and serves the next on a new connection", async () => {
    await using opened = await open(onStream((stream) => {
      stream.session?.goaway();
      stream.respond({ ":status": 200 });
      setTimeout(() => stream.end("whole"), 50);
    }));
    expect((await ask(opened.session, { ":path": "/" })).body).toBe("whole");
    expect((await ask(opened.session, { ":path": "/" })).body).toBe("whole");
    expect(opened.origin.connections()).toBe(2);
  });

  test("an answer that comes ahead of the end of an upload reaches the client, which may stop then", async () => {
    await using opened = await open(onStream((stream) => {
      stream.respond({ ":status": 413 });
      stream.end("too large");
      stream.once("finish", () => stream.close(constants.NGHTTP2_NO_ERROR));
    }));
    const stream = opened.session.request({ ":method": "PUT" }, { endStream: false });
    stream.on("error", () => undefined);
    stream.write(Buffer.alloc(64 * 1024));
    expect((await awaitAnswer(stream)).status).toBe(413);
    expect(await text(stream)).toBe("too large");
    expect(await awaitClose(stream)).toBe(constants.NGHTTP2_NO_ERROR);
    expect((await ask(opened.session, { ":path": "/" })).status).toBe(413);
  });

  test("a client that leaves takes its connection to the server with it", async () => {
    let open_ = 0;
    await using opened = await open((server) => {
      server.on("session", (session) => {
        open_ += 1;
        session.once("close", () => (open_ -= 1));
      });
      server.on("stream", (stream) => stream.respond({ ":status": 200 }, { endStream: true }));
    });
    await ask(opened.session, { ":path": "/" });
    expect(open_).toBe(1);
    opened.session.destroy();
    await expect.poll(() => open_).toBe(0);
    await expect.poll(() => opened.rig.context.flows.size).toBe(0);
  });

  test("clients that vanish in the middle of their answers leave nothing behind", async () => {
    await using opened = await open(onStream((stream) => stream.respond({ ":status": 200 })));
    const { rig, target, origin } = opened;
    const heads = [target, target, "b.example", target, "b.example", "b.example", target, target].map((authority, index) => renderHead(2 * index + 1, { method: "POST", authority, path: "/" }));
    for (let round = 0; round < 100; round += 1) {
      const tls = await openTls(rig, target, authorities, ["h2"]);
      tls.resume().write(Buffer.concat([PREFACE, ...heads]));
      await new Promise((resolve) => setTimeout(resolve, round % 4));
      tls.destroy();
    }
    opened.session.destroy();
    await expect.poll(() => rig.context.flows.size, { timeout: 20_000 }).toBe(0);
    await expect.poll(() => new Promise((resolve) => origin.server.getConnections((_error, count) => resolve(count))), { timeout: 20_000 }).toBe(0);
  });
});
