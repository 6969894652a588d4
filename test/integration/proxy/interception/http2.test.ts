import { createHash, randomBytes } from "node:crypto";
import { type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { ask, awaitAnswer, awaitClose } from "./http2-client.ts";
import { type Authorities, makeAuthorities, openHttp2, startHttp2, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

const MIB = 1024 * 1024;

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

describe("requests by HTTP/2", () => {
  test("reach the server by HTTP/2, over one connection", async () => {
    await using opened = await open((server) => void server.on("stream", (stream, headers) => {
      stream.respond({ ":status": 200, "x-path": headers[":path"], "x-authority": headers[":authority"] });
      stream.end("hello");
    }));
    const { session, target, origin, rig } = opened;
    expect(await ask(session, { ":path": "/x?y=1" })).toMatchObject({ status: 200, body: "hello", headers: { "x-path": "/x?y=1", "x-authority": target } });
    const others = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(session, { ":path": `/${index}` })));
    expect(others.map(({ headers }) => headers["x-path"])).toEqual(Array.from({ length: 20 }, (_, index) => `/${index}`));
    expect(origin.connections()).toBe(1);
    expect(rig.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", action: "allow", method: "GET", protocol: "https-connect", host: "a.example" }));
    expect(JSON.stringify(rig.readLog())).not.toContain("y=1");
  });

  test("arrive as they were sent: order, repeats, cookies, TE, but nothing that concerns one connection only", async () => {
    await using opened = await open(onStream((stream, raw) => {
      stream.respond([":status", "200", "set-cookie", "a=1", "x-one", "1", "set-cookie", "b=2", "proxy-status", "x"]);
      stream.end(JSON.stringify(raw));
    }));
    const fields = [":method", "POST", ":path", "/", ":scheme", "https", ":authority", opened.target];
    const told = await ask(opened.session, [...fields, "x-b", "2", "cookie", "c=1", "x-a", "1", "cookie", "d=2", "x-b", "3", "te", "trailers", "proxy-authorization", "Basic c2VjcmV0"], "body");
    expect(JSON.parse(told.body)).toEqual([":method", "POST", ":scheme", "https", ":authority", opened.target, ":path", "/", "x-b", "2", "cookie", "c=1", "x-a", "1", "cookie", "d=2", "x-b", "3", "te", "trailers"]);
    expect(told.raw.filter((word) => word !== "date").slice(0, 8)).toEqual([":status", "200", "set-cookie", "a=1", "x-one", "1", "set-cookie", "b=2"]);
  });

  test("carry trailers both ways, as gRPC wants them", async () => {
    await using opened = await open((server) => void server.on("stream", (stream) => {
      let trailers: unknown;
      stream.on("trailers", (fields) => (trailers = fields["x-sum"]));
      stream.resume();
      stream.once("end", () => {
        stream.respond({ ":status": 200 }, { waitForTrailers: true });
        stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-seen": String(trailers) }));
        stream.end("message");
      });
    }));
    const stream = opened.session.request({ ":method": "POST", te: "trailers" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "x-sum": "42" }));
    stream.end("message");
    const trailers = new Promise((resolve) => void stream.once("trailers", resolve));
    expect(await text(stream)).toBe("message");
    expect(await trailers).toMatchObject({ "grpc-status": "0", "x-seen": "42" });
  });

  test.each([
    { what: "HEAD", method: "HEAD", status: 200, length: "5" },
    { what: "204", method: "GET", status: 204, length: undefined },
    { what: "304", method: "GET", status: 304, length: undefined },
    { what: "a response that ends with its head", method: "GET", status: 404, length: "0" },
  ])("$what has no body", async ({ method, status, length }) => {
    await using opened = await open(onStream((stream) => stream.respond({ ":status": status, ...(length === undefined ? {} : { "content-length": length }) }, { endStream: true })));
    const told = await ask(opened.session, { ":method": method });
    expect({ status: told.status, body: told.body, length: told.headers["content-length"] }).toEqual({ status, body: "", length });
  });

  test("hear of early hints and of 100 (Continue) ahead of the answer", async () => {
    await using opened = await open(onStream((stream) => {
      stream.additionalHeaders({ ":status": 103, link: "</a.css>; rel=preload" });
      stream.additionalHeaders({ ":status": 100 });
      stream.resume();
      stream.once("end", () => stream.respond({ ":status": 200 }, { endStream: true }));
    }));
    const stream = opened.session.request({ ":method": "POST", expect: "100-continue" }, { endStream: false });
    const heard: unknown[] = [];
    stream.on("headers", (headers) => heard.push([headers[":status"], headers["link"]]));
    await new Promise<void>((resolve) => void stream.once("continue", resolve));
    stream.end("body");
    expect((await awaitAnswer(stream)).status).toBe(200);
    expect(heard[0]).toEqual([103, "</a.css>; rel=preload"]);
  });

  test("server-sent events arrive one by one", async () => {
    const served = Promise.withResolvers<ServerHttp2Stream>();
    await using opened = await open(onStream((stream) => {
      stream.respond({ ":status": 200, "content-type": "text/event-stream" });
      served.resolve(stream);
    }));
    const stream = opened.session.request({ ":path": "/events" });
    await awaitAnswer(stream);
    for (let round = 0; round < 5; round += 1) {
      // The next one is only sent when this one is here.
      const arrived = new Promise<string>((resolve) => void stream.once("data", (bytes: Buffer) => resolve(bytes.toString())));
      (await served.promise).write(`data: ${round}\n\n`);
      expect(await arrived).toBe(`data: ${round}\n\n`);
    }
  });

  test("both sides speak in turns on one stream", async () => {
    await using opened = await open(onStream((stream) => {
      stream.respond({ ":status": 200 });
      stream.on("data", (bytes: Buffer) => void stream.write(`echo ${bytes.toString()}`));
      stream.once("end", () => stream.end("end"));
    }));
    const stream = opened.session.request({ ":method": "POST" }, { endStream: false });
    for (const word of ["one", "two", "three"]) {
      const arrived = new Promise<string>((resolve) => void stream.once("data", (bytes: Buffer) => resolve(bytes.toString())));
      stream.write(word);
      expect(await arrived).toBe(`echo ${word}`);
    }
    stream.end();
    expect(await text(stream)).toBe("end");
  });

  test("64 MiB arrive intact in both directions", async () => {
    await using opened = await open(onStream((stream) => {
      stream.respond({ ":status": 200 });
      stream.pipe(stream);
    }));
    const stream = opened.session.request({ ":method": "POST" }, { endStream: false });
    const [sent, got] = [createHash("sha256"), createHash("sha256")];
    let length = 0;
    stream.on("data", (bytes: Buffer) => {
      got.update(bytes);
      length += bytes.length;
    });
    for (let part = 0; part < 64; part += 1) {
      const bytes = randomBytes(MIB);
      sent.update(bytes);
      if (!stream.write(bytes)) await new Promise<void>((resolve) => void stream.once("drain", resolve));
    }
    stream.end();
    await awaitClose(stream);
    expect(length).toBe(64 * MIB);
    expect(got.digest("hex")).toBe(sent.digest("hex"));
  });

  test("a client that does not read holds its server back", async () => {
    let written = 0;
    await using opened = await open(onStream((stream) => {
      stream.respond({ ":status": 200 });
      const fill = (): void => {
        while (written < 64 * MIB && !stream.destroyed) {
          written += MIB;
          if (!stream.write(Buffer.alloc(MIB))) return void stream.once("drain", fill);
        }
        stream.end();
      };
      fill();
    }));
    const stream = opened.session.request({ ":path": "/large" });
    await awaitAnswer(stream);
    let before = -1;
    while (before !== written) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(written).toBeLessThan(16 * MIB);
    let length = 0;
    stream.on("data", (bytes: Buffer) => (length += bytes.length));
    await awaitClose(stream);
    expect(length).toBe(64 * MIB);
  });
});
