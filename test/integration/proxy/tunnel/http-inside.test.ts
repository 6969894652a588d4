import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import type { Rig } from "../web-rig.ts";
import { echo, type Origin, type OriginManner, startOrigin } from "./origin.ts";
import { askPassage, startPassages } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

const HOST = "a.example.com";

let origin: Origin;
beforeAll(async () => void (origin = await startOrigin(echo)));
afterAll(async () => await origin[Symbol.asyncDispose]());

type Way = "connect" | "socks";

const start = (way: Way, options: Partial<Parameters<typeof startPassages>[1]>): Promise<Rig> => startPassages(way, { port: origin.port, allow: [`${HOST}:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"] }, ...options });
const decisions = (rig: Rig) => rig.readLog().filter((record): record is Extract<DecisionRecord, { kind: "decision" }> => record.kind === "decision");

async function ask(rig: Rig, way: Way, port = origin.port): Promise<RawClient> {
  const client = await RawClient.open(rig.port);
  expect((await askPassage(client, way, `${HOST}:${port}`)).granted).toBe(true);
  return client;
}

/** Speaks ahead of the first client, as no server of HTTP does. */
const early: OriginManner = (socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");

describe.each<Way>(["connect", "socks"])("in a tunnel by %s", (way) => {
  test("limited mode with interception judges the methods of HTTP", async () => {
    await using rig = await start(way, { methods: "limited", settings: { intercept: true } });
    await using reading = await ask(rig, way);
    await reading.send(`GET / HTTP/1.1\r\nHost: ${HOST}:${origin.port}\r\n\r\n`);
    expect(await reading.takeHead()).toMatch(/^HTTP\/1\.1 200 /);
    await using writing = await ask(rig, way);
    await writing.send(`POST / HTTP/1.1\r\nHost: ${HOST}:${origin.port}\r\nContent-Length: 0\r\n\r\n`);
    expect(await writing.takeHead()).toMatch(/^HTTP\/1\.1 403 /);
    expect(decisions(rig).at(-1)).toMatchObject({ action: "deny", reason: "method_not_allowed", method: "POST" });
  });

  test("HTTP has the connection that was opened for it, and leaves none behind", async () => {
    await using server = await startOrigin(echo);
    await using rig = await start(way, { allow: [`${HOST}:${server.port}`] });
    await using client = await ask(rig, way, server.port);
    await client.send(`GET / HTTP/1.1\r\nHost: ${HOST}:${server.port}\r\nConnection: close\r\n\r\n`);
    expect((await client.rest()).toString()).toMatch(/^HTTP\/1\.1 200 /);
    expect(server.connections).toBe(1);
  });

  test("HTTP has none that the server has spoken on before", async () => {
    await using server = await startOrigin((socket, self) => (self.connections === 1 ? early : echo)(socket, self));
    await using rig = await start(way, { allow: [`${HOST}:${server.port}`] });
    await using client = await ask(rig, way, server.port);
    await client.takeHead();
    await client.send(`GET /second HTTP/1.1\r\nHost: ${HOST}:${server.port}\r\nConnection: close\r\n\r\n`);
    expect((await client.rest()).toString()).toContain("GET /second");
    expect(server.connections).toBe(2);
  });

  test("each request of a kept connection is judged", async () => {
    await using rig = await start(way, { allow: [`${HOST}:${origin.port}`, `b.example.com:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"], "b.example.com": ["127.0.0.1"] } });
    await using client = await ask(rig, way);
    const get = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}:${origin.port}\r\n\r\n`;
    await client.send(get(HOST));
    const head = await client.takeHead();
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    await client.take(Number(/Content-Length: (?<count>[0-9]+)/i.exec(head)?.groups?.["count"]));
    await client.send(get("b.example.com"));
    expect(await client.takeHead()).toMatch(/^HTTP\/1\.1 403 /);
    expect(decisions(rig).at(-1)).toMatchObject({ action: "deny", reason: "host_mismatch" });
  });

  test("a client of HTTP/2 without TLS is told to speak HTTP/1.1", async () => {
    await using rig = await start(way, {});
    await using client = await ask(rig, way);
    await client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    const frames = await client.rest();
    // A GOAWAY with HTTP_1_1_REQUIRED.
    expect([frames[12], frames.at(-1)]).toEqual([7, 0x0d]);
  });
});
