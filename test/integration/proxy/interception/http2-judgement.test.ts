import { once } from "node:events";
import { constants, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import type { Rig, RigOptions } from "../web-rig.ts";
import { ask, awaitAnswer, awaitClose, type Told } from "./http2-client.ts";
import { PREFACE, renderFields, renderFrame, renderHead } from "./http2-frames.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startHttp2, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

async function open(options: Partial<RigOptions> = {}, serve = (server: Http2SecureServer): unknown => server.on("stream", (stream: ServerHttp2Stream) => stream.respond({ ":status": 200 }, { endStream: true }))) {
  const stack = new AsyncDisposableStack();
  const seen: string[] = [];
  const origin = stack.use(await startHttp2(await authorities.issuer.contextFor("a.example"), (server) => {
    server.on("stream", (_stream, headers) => seen.push(`${headers[":method"]} ${headers[":authority"]}${headers[":path"]}`));
    serve(server);
  }));
  const target = `a.example:${origin.port}`;
  const rig = stack.use(await startInterception(authorities, { allow: [target, `b.example:${origin.port}`], hosts: { "a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"] }, ...options }));
  return { origin, target, rig, seen, session: () => openHttp2(rig, target, authorities).then((session) => stack.use(session)), [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const denials = (rig: Rig): DecisionRecord[] => rig.readLog().filter((line) => line.kind === "decision" && line.action === "deny");

/** The fields of a good request but for what is changed. */
const base = (port: number, change: Record<string, string | undefined> = {}): string[] => Object.entries({ ":method": "GET", ":scheme": "https", ":authority": `a.example:${port}`, ":path": "/secret", ...change }).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));

/** A server that begins an answer and does not end it. */
const stalled = (server: Http2SecureServer): void => void server.on("stream", (stream: ServerHttp2Stream) => {
  stream.on("error", () => undefined);
  stream.respond({ ":status": 200 });
  stream.write("begun");
});

/** Sends frames, and tells whether the connection was closed. */
const attack = async (tls: TLSSocket, frames: readonly Buffer[]): Promise<string> => {
  const closed = once(tls, "close");
  const heard = once(tls.resume(), "data").then(() => "answered");
  tls.write(Buffer.concat([PREFACE, ...frames]));
  return await Promise.race([closed.then(() => "closed"), heard.then(() => closed).then(() => "closed")]);
};

describe("a request in HTTP/2 that is not let through", () => {
  type Row = { what: string; fields: (port: number) => string[]; options?: Partial<RigOptions>; status: number; error?: string; reason: string; says: RegExp };
  const rows: readonly Row[] = [
    { what: "names another allowed host in :authority", fields: (port) => base(port, { ":authority": `b.example:${port}` }), status: 403, error: "blocked-by-policy", reason: "host_mismatch", says: /b\.example/ },
    { what: "names a host that is not allowed in :authority", fields: (port) => base(port, { ":authority": "evil.example" }), status: 403, error: "blocked-by-policy", reason: "host_mismatch", says: /evil\.example/ },
    { what: "names another port in :authority", fields: (port) => base(port, { ":authority": `a.example:${port + 1}` }), status: 403, error: "blocked-by-policy", reason: "host_mismatch", says: /a\.example/ },
    { what: "names the address of its host in :authority", fields: (port) => base(port, { ":authority": "127.0.0.1" }), status: 403, error: "blocked-by-policy", reason: "host_mismatch", says: /127\.0\.0\.1/ },
    { what: "names another host in Host, and the right one in :authority", fields: (port) => [...base(port), "host", "b.example"], status: 403, error: "blocked-by-policy", reason: "host_mismatch", says: /b\.example/ },
    { what: "names another host in Host alone", fields: (port) => [...base(port, { ":authority": undefined }), "host", "b.example"], status: 403, error: "blocked-by-policy", reason: "host_mismatch", says: /b\.example/ },
    { what: "names no host that can be read", fields: (port) => base(port, { ":authority": "a..example" }), status: 400, reason: "denied", says: /is no host/ },
    { what: "came by https and says http", fields: (port) => base(port, { ":scheme": "http" }), status: 400, reason: "denied", says: /its scheme is "http"/ },
    { what: "has a fragment in its path", fields: (port) => base(port, { ":path": "/a#b" }), status: 400, reason: "denied", says: /its path is none/ },
    { what: "wants a tunnel", fields: (port) => base(port, { ":method": "CONNECT", ":scheme": undefined, ":path": undefined }), status: 400, reason: "denied", says: /CONNECT is for a proxy/ },
    { what: "wants to change something in limited mode", fields: (port) => base(port, { ":method": "POST" }), options: { methods: "limited" }, status: 403, error: "blocked-by-method-policy", reason: "method_not_allowed", says: /POST/ },
    { what: "writes a reading method in small letters in limited mode", fields: (port) => base(port, { ":method": "get" }), options: { methods: "limited" }, status: 403, error: "blocked-by-method-policy", reason: "method_not_allowed", says: /get/ },
  ];
  test.each(rows)("$what", async ({ fields, options, status, error, reason, says }) => {
    await using opened = await open(options);
    const { origin, rig, seen } = opened;
    const session = await opened.session();
    const told: Told = await ask(session, fields(origin.port));
    expect({ status: told.status, error: told.headers["x-proxy-error"], type: told.headers["content-type"] }).toEqual({ status, error, type: status === 403 ? "application/json" : "text/plain; charset=utf-8" });
    const [line] = denials(rig);
    expect(line).toMatchObject({ reason, port: origin.port, protocol: "https-connect", detail: expect.stringMatching(says) });
    expect(told.body).toContain(status === 403 ? `{"status":"blocked","host":"a.example","port":${origin.port},"reason":"${reason}","rule":` : "AgentBox refuses this request: ");
    expect(JSON.stringify(rig.readLog())).not.toContain("secret");
    // The same connection is good for what is allowed, and the server saw only that.
    expect((await ask(session, base(origin.port, { ":path": "/fine" }))).status).toBe(200);
    expect(seen).toEqual([`GET a.example:${origin.port}/fine`]);
  });

  test.each(["GET", "HEAD", "OPTIONS"])("is none of the kind: %s passes in limited mode", async (method) => {
    await using opened = await open({ methods: "limited" });
    expect((await ask(await opened.session(), { ":method": method })).status).toBe(200);
    expect(opened.seen).toHaveLength(1);
  });

  test.each(["A.EXAMPLE", "a.example.", "a.example"])("is none of the kind: %s is the same host, and the server hears its canonical name", async (spelling) => {
    await using opened = await open();
    expect((await ask(await opened.session(), { ":authority": spelling, ":path": "/" })).status).toBe(200);
    expect(opened.seen).toEqual([`GET ${opened.target}/`]);
  });

  test.each([
    { what: "names a user in :authority", change: { ":authority": "b.example@a.example" } },
    { what: "has a blank in its path", change: { ":path": "/a b" } },
    { what: "has a whole URI for a path", change: { ":path": "https://b.example/" } },
    { what: "wants WebSocket, which is not offered", change: { ":method": "CONNECT", ":protocol": "websocket" } },
    { what: "names a connection", change: { connection: "close" } },
    { what: "has a second :path", change: { ":Path": "/two" } },
  ])("$what: it is reset, and nobody sees it", async ({ change }) => {
    await using opened = await open();
    const tls = await openTls(opened.rig, opened.target, authorities, ["h2"]);
    const frames: Buffer[] = [];
    tls.on("data", (bytes: Buffer) => frames.push(bytes));
    const fields = base(opened.origin.port, change).map((word) => word.replace(":Path", ":path"));
    tls.write(Buffer.concat([PREFACE, renderFrame("headers", 1, renderFields(fields.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : []))), 5)]));
    await expect.poll(() => Buffer.concat(frames).includes(renderFrame("reset", 1, Buffer.from([0, 0, 0, constants.NGHTTP2_PROTOCOL_ERROR])))).toBe(true);
    expect(opened.seen).toEqual([]);
    tls.destroy();
  });

  test("has a line break in a field: the field is dropped", async () => {
    let raw: readonly string[] = [];
    await using opened = await open({}, (server) => void server.on("stream", (stream: ServerHttp2Stream, _headers: unknown, _flags: number, fields: string[]) => {
      raw = fields;
      stream.respond({ ":status": 200 }, { endStream: true });
    }));
    const tls = await openTls(opened.rig, opened.target, authorities, ["h2"]);
    tls.resume().write(Buffer.concat([PREFACE, renderFrame("headers", 1, renderFields([[":method", "GET"], [":scheme", "https"], [":authority", opened.target], [":path", "/"], ["x-a", "b\r\nhost: b.example"], ["x-b", "1"]]), 5)]));
    await expect.poll(() => raw).toEqual([":method", "GET", ":scheme", "https", ":authority", opened.target, ":path", "/", "x-b", "1"]);
    tls.destroy();
  });

  test("cannot learn of WebSocket over HTTP/2: the setting is off", async () => {
    await using opened = await open();
    const session = await opened.session();
    await ask(session, { ":path": "/" });
    expect(session.remoteSettings.enableConnectProtocol).toBe(false);
  });

  test("has its body refused as well, and the connection goes on", async () => {
    await using opened = await open({ methods: "limited" });
    const session = await opened.session();
    const stream = session.request({ ":method": "POST" }, { endStream: false });
    stream.write(Buffer.alloc(16 * 1024));
    expect((await awaitAnswer(stream)).status).toBe(403);
    stream.resume();
    expect(await awaitClose(stream)).toBe(constants.NGHTTP2_NO_ERROR);
    expect((await ask(session, { ":path": "/" })).status).toBe(200);
  });
});

describe("a policy that changes", () => {
  test("cuts what goes on at a host that is denied now, and its connection", async () => {
    await using opened = await open({}, stalled);
    const session = await opened.session();
    const stream = session.request({ ":path": "/" });
    await awaitAnswer(stream);
    opened.rig.replace({ allow: [`b.example:${opened.origin.port}`] });
    expect(await awaitClose(stream)).not.toBe(constants.NGHTTP2_NO_ERROR);
    await expect.poll(() => session.destroyed).toBe(true);
    expect(denials(opened.rig)).toContainEqual(expect.objectContaining({ host: "a.example", reason: "not_allowed", method: "GET" }));
    expect(opened.rig.context.flows.size).toBe(0);
  });

  test("cuts a method that is not permitted any more, and leaves the rest", async () => {
    await using opened = await open({}, stalled);
    const session = await opened.session();
    const [post, get] = [session.request({ ":method": "POST" }), session.request({ ":method": "GET" })];
    await Promise.all([awaitAnswer(post), awaitAnswer(get)]);
    opened.rig.replace({ allow: [opened.target], methods: "limited" });
    expect(await awaitClose(post)).toBe(constants.NGHTTP2_CANCEL);
    expect(get.closed).toBe(false);
    expect(denials(opened.rig)).toContainEqual(expect.objectContaining({ reason: "method_not_allowed", method: "POST" }));
  });

  test("leaves a connection that is still allowed, on a new connection to its server", async () => {
    await using opened = await open();
    const session = await opened.session();
    await ask(session, { ":path": "/1" });
    opened.rig.replace({ allow: [opened.target] });
    expect((await ask(session, { ":path": "/2" })).status).toBe(200);
    expect(opened.origin.connections()).toBe(2);
  });
});

describe("a client that misuses HTTP/2", () => {
  test.each([
    { what: "resets thousands of requests as soon as they are made", frames: (authority: string) => Array.from({ length: 20_000 }, (_, index) => [renderHead(2 * index + 1, { method: "GET", authority, path: "/" }), renderFrame("reset", 2 * index + 1, Buffer.from([0, 0, 0, 8]))]).flat() },
    { what: "sends a head without end", frames: (authority: string) => [renderFrame("headers", 1, renderFields([[":method", "GET"], [":scheme", "https"], [":authority", authority], [":path", "/"]])), ...Array.from({ length: 2000 }, () => renderFrame("continuation", 1, renderFields([["x-a", "b".repeat(1000)]])))] },
    { what: "sends frames that are none", frames: () => [Buffer.alloc(100_000, 0xff)] },
  ])("$what: its connection ends, others go on", async ({ frames }) => {
    await using opened = await open();
    const other = await opened.session();
    const tls = await openTls(opened.rig, opened.target, authorities, ["h2"]);
    expect(await attack(tls, frames(opened.target))).toBe("closed");
    expect((await ask(other, { ":path": "/" })).status).toBe(200);
    await expect.poll(() => opened.rig.context.flows.size).toBe(1);
  });

  test("sends no settings: its connection ends after a while", async () => {
    await using opened = await open();
    const tls = await openTls(opened.rig, opened.target, authorities, ["h2"]);
    tls.resume().write(PREFACE.subarray(0, 10));
    await once(tls, "close");
    await expect.poll(() => opened.rig.context.flows.size).toBe(0);
  });
});
