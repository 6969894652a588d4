import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import type { Rig, RigOptions } from "../web-rig.ts";
import { type Authorities, makeAuthorities, openTls, startHttps, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

const MIB = 1024 * 1024;

type Wish = { method?: string; path?: string; headers?: Record<string, string> };
type Told = { status: number | undefined; error: unknown; body: string };

async function open(serve: (request: IncomingMessage, response: ServerResponse) => void, options: Partial<RigOptions> = {}) {
  const stack = new AsyncDisposableStack();
  const origin = stack.use(await startHttps(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", serve)));
  const target = `a.example:${origin.port}`;
  const rig = stack.use(await startInterception(authorities, { allow: [target, `b.example:${origin.port}`], hosts: { "a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"] }, ...options }));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = (_options, created) => {
    void openTls(rig, target, authorities).then((tls) => created?.(null, tls));
    return undefined;
  };
  stack.defer(() => agent.destroy());
  const send = ({ method = "GET", path = "/", headers = {} }: Wish): ClientRequest => request({ agent, headers: { host: target, ...headers }, method, path, setHost: false });
  const ask = async (wish: Wish = {}, body?: string): Promise<Told> => {
    const sent = send(wish);
    sent.end(body);
    const response = await new Promise<IncomingMessage>((resolve, reject) => void sent.once("response", resolve).once("error", reject));
    return { status: response.statusCode, error: response.headers["x-proxy-error"], body: await text(response) };
  };
  return { origin, target, rig, ask, send, tls: () => openTls(rig, target, authorities), [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const decisions = (rig: Rig, action: "allow" | "deny"): DecisionRecord[] => rig.readLog().filter((line) => line.kind === "decision" && line.action === action);

describe("HTTP/1.1 inside opened TLS", () => {
  test("is served request by request on one connection, and the log says what was asked", async () => {
    await using opened = await open((asked, response) => response.end(`${asked.method} ${asked.url} ${asked.headers.host}`));
    const { ask, target, rig, origin } = opened;
    expect(await ask({ path: "/one?token=secret" })).toEqual({ status: 200, error: undefined, body: `GET /one?token=secret ${target}` });
    expect((await ask({ path: "/two", method: "POST" }, "body")).body).toBe(`POST /two ${target}`);
    expect(origin.connections()).toBe(1);
    expect(decisions(rig, "allow")).toEqual([
      expect.objectContaining({ protocol: "https-connect", method: "CONNECT", host: "a.example", port: origin.port }),
      expect.objectContaining({ protocol: "https-connect", method: "GET", host: "a.example", port: origin.port }),
      expect.objectContaining({ protocol: "https-connect", method: "POST", host: "a.example", port: origin.port }),
    ]);
    expect(rig.readLog()).toContainEqual(expect.objectContaining({ kind: "event", event: "certificate-issued", detail: expect.stringMatching(/^a\.example, valid until /) }));
    expect(JSON.stringify(rig.readLog())).not.toMatch(/secret|token|\/one/);
  });

  test("writes down what requests carried, and the tunnel around them does not count twice", async () => {
    await using opened = await open((asked, response) => void asked.resume().once("end", () => response.end(Buffer.alloc(50_000))));
    await opened.ask({ method: "POST" }, "x".repeat(100_000));
    await expect.poll(() => opened.rig.context.flows.size).toBe(1);
    opened.rig.context.access.log.close();
    const traffic = opened.rig.readLog().filter((line) => line.kind === "traffic");
    expect(traffic).toEqual([expect.objectContaining({ protocol: "https-connect", method: "POST", host: "a.example", flows: 1 })]);
    expect(traffic[0]).toMatchObject({ bytesUp: expect.closeTo(100_150, -3), bytesDown: expect.closeTo(50_200, -3) });
  });

  test.each([
    { what: "another allowed host", host: "b.example", status: 403, error: "blocked-by-policy", reason: "host_mismatch" },
    { what: "a host that is not allowed", host: "evil.example", status: 403, error: "blocked-by-policy", reason: "host_mismatch" },
    { what: "another port", host: "a.example:1", status: 403, error: "blocked-by-policy", reason: "host_mismatch" },
  ])("a request that names $what in Host is refused and recorded", async ({ host, status, error, reason }) => {
    const seen: (string | undefined)[] = [];
    await using opened = await open((asked, response) => {
      seen.push(asked.url);
      response.end();
    });
    const told = await opened.ask({ path: "/hidden", headers: { host } });
    expect(told).toMatchObject({ status, error, body: expect.stringContaining(`"reason":"${reason}"`) });
    expect(decisions(opened.rig, "deny")).toEqual([expect.objectContaining({ reason, host: "a.example", protocol: "https-connect", method: "GET" })]);
    expect((await opened.ask({ path: "/fine" })).status).toBe(200);
    expect(seen).toEqual(["/fine"]);
  });

  test("in limited mode reading passes, and changing is refused on the same connection", async () => {
    const seen: unknown[] = [];
    await using opened = await open((asked, response) => {
      seen.push(asked.method);
      response.end("ok");
    }, { methods: "limited" });
    expect(await opened.ask()).toMatchObject({ status: 200 });
    expect(await opened.ask({ method: "POST" }, "body")).toMatchObject({ status: 403, error: "blocked-by-method-policy", body: expect.stringContaining('"reason":"method_not_allowed"') });
    expect(await opened.ask({ headers: { connection: "Upgrade", upgrade: "websocket" } })).toMatchObject({ status: 403, error: "blocked-by-method-policy" });
    expect(await opened.ask({ method: "OPTIONS" })).toMatchObject({ status: 200 });
    expect(seen).toEqual(["GET", "OPTIONS"]);
  });

  test("server-sent events arrive one by one", async () => {
    const served = Promise.withResolvers<ServerResponse>();
    await using opened = await open((_asked, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      served.resolve(response);
    });
    const tls = await opened.tls();
    tls.write(`GET /events HTTP/1.1\r\nHost: ${opened.target}\r\n\r\n`);
    let heard = "";
    tls.on("data", (bytes: Buffer) => (heard += bytes.toString()));
    for (const event of ["one", "two", "three"]) {
      (await served.promise).write(`data: ${event}\n\n`);
      await expect.poll(() => heard).toContain(`data: ${event}\n\n`);
    }
    tls.destroy();
  });

  test("WebSocket is spoken both ways after its handshake, and ends with a half-close", async () => {
    await using opened = await open(() => undefined);
    opened.origin.server.on("upgrade", (_asked, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n");
      socket.on("data", (bytes: Buffer) => void socket.write(`echo ${bytes.toString()}`));
      socket.once("end", () => socket.end("bye"));
    });
    const tls = await opened.tls();
    let heard = "";
    tls.on("data", (bytes: Buffer) => (heard += bytes.toString()));
    tls.write(`GET /chat HTTP/1.1\r\nHost: ${opened.target}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`);
    await expect.poll(() => heard).toContain("\r\n\r\n");
    for (const word of ["one", "two"]) {
      tls.write(word);
      await expect.poll(() => heard).toContain(`echo ${word}`);
    }
    tls.end();
    await once(tls, "close");
    expect(heard).toMatch(/bye$/);
    expect(decisions(opened.rig, "allow")).toContainEqual(expect.objectContaining({ method: "GET", reason: "allowed" }));
  });

  test("64 MiB are uploaded intact", async () => {
    await using opened = await open((asked, response) => {
      const hash = createHash("sha256");
      asked.on("data", (bytes: Buffer) => hash.update(bytes));
      asked.once("end", () => response.end(hash.digest("hex")));
    });
    const tls = await opened.tls();
    const answer = text(tls);
    tls.write(`PUT /large HTTP/1.1\r\nHost: ${opened.target}\r\nConnection: close\r\nContent-Length: ${64 * MIB}\r\n\r\n`);
    const sent = createHash("sha256");
    for (let part = 0; part < 64; part += 1) {
      const bytes = randomBytes(MIB);
      sent.update(bytes);
      if (!tls.write(bytes)) await once(tls, "drain");
    }
    expect(await answer).toContain(sent.digest("hex"));
  });

  test("64 MiB are downloaded intact", async () => {
    const parts = Array.from({ length: 64 }, () => randomBytes(MIB));
    await using opened = await open((_asked, response) => void Readable.from(parts).pipe(response));
    const response = await new Promise<IncomingMessage>((resolve) => void opened.send({}).once("response", resolve).end());
    const [got, sent] = [createHash("sha256"), createHash("sha256")];
    for await (const bytes of response) got.update(bytes);
    for (const part of parts) sent.update(part);
    expect(got.digest("hex")).toBe(sent.digest("hex"));
  });

  test("a policy that denies the host cuts what goes on, and idle connections too", async () => {
    await using opened = await open((asked, response) => {
      if (asked.url === "/stall") response.write("begun");
      else response.end("ok");
    });
    const [busy, idle] = [await opened.tls(), await opened.tls()];
    busy.write(`GET /stall HTTP/1.1\r\nHost: ${opened.target}\r\n\r\n`);
    idle.write(`GET / HTTP/1.1\r\nHost: ${opened.target}\r\n\r\n`);
    await Promise.all([once(busy, "data"), once(idle, "data")]);
    const closed = Promise.all([busy, idle].map((tls) => new Promise((resolve) => void tls.once("close", resolve))));
    opened.rig.replace({ allow: [`b.example:${opened.origin.port}`] });
    await closed;
    expect(decisions(opened.rig, "deny")).toContainEqual(expect.objectContaining({ reason: "not_allowed", host: "a.example", method: "GET" }));
    expect(opened.rig.context.flows.size).toBe(0);
  });

  test("clients that vanish leave nothing behind", async () => {
    await using opened = await open((asked, response) => {
      if (asked.url === "/stall") response.write("begun");
      else response.end("ok");
    });
    for (let round = 0; round < 60; round += 1) {
      const tls = await opened.tls();
      tls.resume().write(`POST ${round % 2 === 0 ? "/stall" : "/"} HTTP/1.1\r\nHost: ${opened.target}\r\nContent-Length: 1000\r\n\r\nhalf`);
      await new Promise((resolve) => setTimeout(resolve, round % 4));
      tls.destroy();
    }
    await expect.poll(() => opened.rig.context.flows.size, { timeout: 20_000 }).toBe(0);
  });
});
