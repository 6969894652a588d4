import { createServer as createTlsServer, connect as connectTls } from "node:tls";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import type { Connection } from "../../../../proxy/net/connection.ts";
import type { Passage, WebContext } from "../../../../proxy/web-context.ts";
import { createAuthority, createIssuer } from "../../../lab/certificates.ts";
import { makeHello } from "../../../lab/client-hello.ts";
import type { Rig } from "../web-rig.ts";
import { echo, type Origin, startOrigin } from "./origin.ts";
import { askPassage, startPassages, type Way } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

const HOST = "a.example.com";
const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

let origin: Origin;
beforeAll(async () => void (origin = await startOrigin(echo)));
afterAll(async () => await origin[Symbol.asyncDispose]());

/** Stands in for interception: says that it was asked, and what it was given. */
type Intercepted = { passage: Passage; first: Buffer };

async function start(way: Way, options: Partial<Parameters<typeof startPassages>[1]>, seen: Intercepted[] = []): Promise<Rig> {
  const intercept: WebContext["intercept"] = (client: Connection, first, passage) => {
    seen.push({ passage, first });
    passage.upstream?.destroy();
    client.end("intercepted");
    client.resume();
  };
  return await startPassages(way, { port: origin.port, allow: [`${HOST}:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"] }, parts: { intercept }, ...options });
}

const decisions = (rig: Rig) => rig.readLog().filter((record): record is Extract<DecisionRecord, { kind: "decision" }> => record.kind === "decision");

async function ask(rig: Rig, way: Way): Promise<{ client: RawClient; code: number | undefined }> {
  const client = await RawClient.open(rig.port);
  const { code } = await askPassage(client, way, `${HOST}:${origin.port}`);
  return { client, code };
}

const GRANTED: Readonly<Record<Way, number | undefined>> = { connect: 200, socks: 0, tls: undefined };

describe.each<Way>(["connect", "socks", "tls"])("asked for by %s", (way) => {
  test("TLS that is to be opened goes to interception with its hello", async () => {
    const seen: Intercepted[] = [];
    const before = origin.heard.length;
    await using rig = await start(way, { settings: { intercept: true } }, seen);
    const { client } = await ask(rig, way);
    await client.trickle(makeHello({ sni: HOST }));
    expect((await client.rest()).toString()).toBe("intercepted");
    expect(seen.map(({ first, passage }) => [first.equals(makeHello({ sni: HOST })), passage.admitted.name, passage.admitted.port])).toEqual([[true, HOST, origin.port]]);
    // Nobody was told yet that a server was there, so nothing is dialled for redirected TLS.
    expect(seen[0]?.passage.upstream !== undefined).toBe(way !== "tls");
    expect(origin.heard.length).toBe(before);
  });

  test("TLS that is to be opened, with another name, does not even get there", async () => {
    const seen: Intercepted[] = [];
    await using rig = await start(way, { settings: { intercept: true } }, seen);
    const { client } = await ask(rig, way);
    await client.send(makeHello({ sni: "b.example.com" }));
    expect(await client.rest()).toEqual(ALERT);
    expect(seen).toEqual([]);
    expect(decisions(rig).at(-1)?.reason).toBe(way === "tls" ? "not_allowed" : "host_mismatch");
  });

  test("a host that interception passes by is handed on unopened", async () => {
    await using rig = await start(way, { settings: { intercept: true, passesThrough: (host) => host.kind === "name" && host.name === HOST } });
    const { client } = await ask(rig, way);
    await client.send(makeHello({ sni: HOST }));
    expect(await client.take(makeHello({ sni: HOST }).length)).toEqual(makeHello({ sni: HOST }));
  });

  test("a hello that may hide its name is passed on, and refused where the policy says so", async () => {
    const hiding = makeHello({ sni: HOST, ech: [0, 0, 1, 0, 1, 7, 0, 0, 0, 0] });
    await using lenient = await start(way, {});
    const passed = await ask(lenient, way);
    await passed.client.send(hiding);
    expect(await passed.client.take(hiding.length)).toEqual(hiding);
    await using strict = await start(way, { settings: { refuseEch: true } });
    const refused = await ask(strict, way);
    await refused.client.send(hiding);
    expect(await refused.client.rest()).toEqual(ALERT);
    expect(decisions(strict).at(-1)).toMatchObject({ action: "deny", reason: "host_mismatch", detail: expect.stringContaining("ECH") });
    const plain = await ask(strict, way);
    await plain.client.send(makeHello({ sni: HOST }));
    expect(await plain.client.take(makeHello({ sni: HOST }).length)).toEqual(makeHello({ sni: HOST }));
  });

  test("nothing passes while the proxy is disabled", async () => {
    await using rig = await start(way, { settings: { enabled: false } });
    const { client, code } = await ask(rig, way);
    expect(code).toBe({ connect: 503, socks: 2, tls: undefined }[way]);
    await client.send(makeHello({ sni: HOST }));
    await client.rest();
    expect(decisions(rig)).toEqual([expect.objectContaining({ action: "deny", reason: "proxy_disabled" })]);
  });

  test("report mode lets through what no rule allows, but no second name", async () => {
    await using rig = await start(way, { allow: [], settings: { report: true } });
    const { client, code } = await ask(rig, way);
    expect(code).toBe(GRANTED[way]);
    await client.send(makeHello({ sni: HOST }));
    expect(await client.take(makeHello({ sni: HOST }).length)).toEqual(makeHello({ sni: HOST }));
    expect(decisions(rig).at(-1)).toMatchObject({ action: "report", reason: "not_allowed" });
    if (way === "tls") return;
    const other = await ask(rig, way);
    await other.client.send(makeHello({ sni: "b.example.com" }));
    expect(await other.client.rest()).toEqual(ALERT);
    expect(decisions(rig).at(-1)).toMatchObject({ action: "deny", reason: "host_mismatch" });
  });

  test("limited mode needs interception", async () => {
    await using rig = await start(way, { methods: "limited" });
    const { client, code } = await ask(rig, way);
    expect(code).toBe({ connect: 403, socks: 2, tls: undefined }[way]);
    if (way === "tls") await client.send(makeHello({ sni: HOST }));
    await client.rest();
    // SOCKS reaches port 443 only, and the server of this test listens elsewhere.
    expect(decisions(rig)).toEqual([expect.objectContaining({ action: "deny", reason: way === "socks" ? "method_not_allowed" : "mitm_required" })]);
  });

  test("limited mode with interception lets TLS through to it", async () => {
    const seen: Intercepted[] = [];
    await using rig = await start(way, { methods: "limited", settings: { intercept: true } }, seen);
    const { client, code } = await ask(rig, way);
    expect(code).toBe(GRANTED[way]);
    await client.send(makeHello({ sni: HOST }));
    expect((await client.rest()).toString()).toBe("intercepted");
    expect(seen.length).toBe(1);
  });

  test("limited mode with interception refuses a host that it passes by", async () => {
    await using rig = await start(way, { methods: "limited", settings: { intercept: true, passesThrough: () => true } });
    const { client } = await ask(rig, way);
    await client.send(makeHello({ sni: HOST }));
    await client.rest();
    expect(decisions(rig).map(({ reason }) => reason)).toEqual([way === "socks" ? "method_not_allowed" : "mitm_required"]);
  });
});

describe.each<"connect" | "socks">(["connect", "socks"])("asked for by %s", (way) => {
  test("an entry that says tcp passes whatever it speaks, unread", async () => {
    await using rig = await start(way, { allow: [`tcp://${HOST}:${origin.port}`], settings: { intercept: true } });
    const { client } = await ask(rig, way);
    const words = makeHello({ sni: "b.example.com" });
    await client.send(words.subarray(0, 3));
    expect(await client.take(3)).toEqual(words.subarray(0, 3));
    await client.send(words.subarray(3));
    expect(await client.take(words.length - 3)).toEqual(words.subarray(3));
  });

  test("an entry that says tcp is refused in limited mode, with interception as well", async () => {
    await using rig = await start(way, { methods: "limited", allow: [`tcp://${HOST}:${origin.port}`], settings: { intercept: true } });
    const { code } = await ask(rig, way);
    expect(code).toBe(way === "connect" ? 403 : 2);
  });

  test("limited mode with interception lets nothing through that it cannot read", async () => {
    await using rig = await start(way, { methods: "limited", settings: { intercept: true } });
    const { client } = await ask(rig, way);
    const before = origin.heard.length;
    await client.send("POST\r\n");
    await client.rest();
    expect(origin.heard.length).toBe(before);
    expect(decisions(rig).at(-1)).toMatchObject({ action: "deny", reason: way === "socks" ? "method_not_allowed" : "mitm_required" });
  });

  test("a server that refuses is told apart from a policy that does", async () => {
    const gone = await startOrigin();
    await gone[Symbol.asyncDispose]();
    await using rig = await start(way, { allow: [`${HOST}:${gone.port}`] });
    await using client = await RawClient.open(rig.port);
    const answer = await askPassage(client, way, `${HOST}:${gone.port}`);
    expect(answer.code).toBe(way === "connect" ? 502 : 5);
    expect(decisions(rig)).toEqual([expect.objectContaining({ action: "allow" })]);
  });

  test("a policy that comes while a server is dialled judges the tunnel before it is granted", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { promise: dialled, resolve: tellDialled } = Promise.withResolvers<void>();
    await using rig = await start(way, {});
    const { dialler } = rig.context;
    const dial = dialler.dial.bind(dialler);
    dialler.dial = async (...parameters) => {
      const result = await dial(...parameters);
      tellDialled();
      await gate;
      return result;
    };
    await using client = await RawClient.open(rig.port);
    const answer = askPassage(client, way, `${HOST}:${origin.port}`);
    await dialled;
    rig.replace({ allow: [] });
    open();
    expect((await answer).code).toBe(way === "connect" ? 403 : 2);
    expect(rig.context.flows.size).toBe(0);
  });
});

test.each<Way>(["connect", "socks", "tls"])("a real TLS session passes by %s, with its protocol and its certificate", async (way) => {
  const authority = await createAuthority();
  const issuer = await createIssuer(authority);
  const context = await issuer.contextFor(HOST);
  const server = createTlsServer({ ALPNProtocols: ["h2", "http/1.1"], SNICallback: (_name, done) => done(null, context) }, (socket) => socket.end(`${socket.alpnProtocol} ${String(socket.getProtocol())}`));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const where = server.address();
  if (where === null || typeof where === "string") throw new Error("no port");
  await using rig = await start(way, { port: where.port, allow: [`${HOST}:${where.port}`] });
  await using client = await RawClient.open(rig.port);
  expect((await askPassage(client, way, `${HOST}:${where.port}`)).granted).toBe(true);
  client.socket.removeAllListeners("data");
  const tls = connectTls({ socket: client.socket, servername: HOST, ca: authority.certificate, ALPNProtocols: ["h2"] });
  const [bytes] = await once(tls, "data");
  expect(String(bytes)).toBe("h2 TLSv1.3");
  tls.destroy();
  server.close();
});
