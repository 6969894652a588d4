import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { parseUpstream } from "../../../../policy/proxy-words.ts";
import { RawClient } from "../tunnel/raw-client.ts";
import { type OriginManner, startOrigin } from "../tunnel/origin.ts";
import { answering, HOST, OK, openHttp, OTHER, takeAnswer } from "./http-rig.ts";

/** Answers one request, resets at the second, and answers the third. */
function stale(again: string): OriginManner {
  let requests = 0;
  return (socket) => {
    socket.on("data", () => {
      requests += 1;
      if (requests === 2) socket.resetAndDestroy();
      else socket.write(requests === 1 ? OK : again);
    });
  };
}

describe("a connection to a server", () => {
  const kept: readonly [row: string, response: string, connections: number][] = [
    ["is used again after a whole response", OK, 1],
    ["is not used again after Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 2],
    ["is not used again after HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2],
  ];
  test.each(kept)("%s", async (_row, response, connections) => {
    await using path = await openHttp(answering(response));
    for (let count = 0; count < 2; count += 1) {
      await path.client.send(path.request());
      expect((await takeAnswer(path.client)).status).toBe(200);
    }
    expect(path.origin.connections).toBe(connections);
  });

  test("is not used for two requests at a time", async () => {
    await using path = await openHttp((socket) => void socket.on("data", () => void setTimeout(() => socket.write(OK), 50)));
    await using second = await RawClient.open(path.rig.port);
    await Promise.all([path.client.send(path.request()), second.send(path.request())]);
    expect([(await takeAnswer(path.client)).status, (await takeAnswer(second)).status]).toEqual([200, 200]);
    expect(path.origin.connections).toBe(2);
  });

  test("that its server closed meanwhile is not used again", async () => {
    await using path = await openHttp();
    await path.client.send(path.request());
    await takeAnswer(path.client);
    path.origin.sockets[0]?.end();
    await sleep(50);
    await path.client.send(path.request("POST /", "Content-Length: 0\r\n"));
    expect((await takeAnswer(path.client)).status).toBe(200);
    expect(path.origin.connections).toBe(2);
  });

  test("that ends just as the request is on its way is replaced by another, once", async () => {
    await using path = await openHttp(stale("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain"));
    await path.client.send(path.request());
    await takeAnswer(path.client);
    await path.client.send(path.request("GET /second"));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "again" });
    expect(path.heard.match(/GET \/second/g)).toHaveLength(2);
  });

  test("is never asked twice for what cannot be repeated: the client sees the end that it would see without a proxy", async () => {
    await using path = await openHttp(stale(OK));
    await path.client.send(path.request());
    await takeAnswer(path.client);
    await path.client.send(path.request("POST /second", "Content-Length: 4\r\n", "body"));
    expect((await path.client.rest()).toString()).toBe("");
    expect(path.heard.match(/POST \/second/g)).toHaveLength(1);
  });

  test("is new for the first request of a client that cannot be repeated", async () => {
    await using path = await openHttp();
    await path.client.send(path.request());
    await takeAnswer(path.client);
    await using second = await RawClient.open(path.rig.port);
    await second.send(path.request("POST /", "Content-Length: 4\r\n", "body"));
    expect((await takeAnswer(second)).status).toBe(200);
    expect(path.origin.connections).toBe(2);
  });

  test("is closed when another policy comes into force, allowed or not", async () => {
    await using path = await openHttp();
    await path.client.send(path.request());
    await takeAnswer(path.client);
    const closed = new Promise((resolve) => void path.origin.sockets[0]?.once("close", resolve));
    path.rig.replace({ allow: [path.authority] });
    await closed;
    await path.client.send(path.request());
    expect((await takeAnswer(path.client)).status).toBe(200);
    expect(path.origin.connections).toBe(2);
  });
});

describe("a new policy", () => {
  test("cuts a response that it does not let through any more, and says so", async () => {
    await using path = await openHttp(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"));
    await path.client.send(path.request());
    await path.client.takeHead();
    await path.client.take(10);
    const closed = new Promise((resolve) => void path.origin.sockets[0]?.once("close", resolve));
    path.rig.replace({ allow: [OTHER] });
    await closed;
    await path.client.rest();
    expect(path.client.error).toMatchObject({ code: "ECONNRESET" });
    path.rig.context.access.log.close();
    expect(path.rig.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", action: "deny", reason: "not_allowed", host: HOST }));
    expect(path.rig.readLog()).toContainEqual(expect.objectContaining({ kind: "traffic", host: HOST, cut: true }));
  });

  test("does not touch what it still lets through", async () => {
    await using path = await openHttp(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"));
    await path.client.send(path.request());
    await path.client.takeHead();
    await path.client.take(10);
    path.rig.replace({ allow: [path.authority] });
    path.origin.sockets[0]?.write("0\r\n\r\n");
    expect((await path.client.take(5)).toString()).toBe("0\r\n\r\n");
    await path.client.send(path.request());
    expect(await path.client.takeHead()).toContain("200 OK");
  });

  test("judges the next request on a connection that is open", async () => {
    await using path = await openHttp();
    await path.client.send(path.request());
    await takeAnswer(path.client);
    path.rig.replace({ allow: [OTHER] });
    await path.client.send(path.request());
    expect((await takeAnswer(path.client)).status).toBe(403);
    path.rig.replace({ allow: [path.authority] });
    await path.client.send(path.request());
    expect((await takeAnswer(path.client)).status).toBe(200);
  });

  test("that comes while a name is looked up is the one that judges", async () => {
    await using path = await openHttp(answering(), { resolvesLate: true });
    await path.client.send(path.request());
    while (path.rig.asked.length === 0) await sleep(1);
    path.rig.replace({ allow: [OTHER] });
    expect((await takeAnswer(path.client)).status).toBe(403);
    expect(path.origin.connections).toBe(0);
  });

  const meanwhile: readonly [row: string, allow: (authority: string) => string, status: number][] = [
    ["still lets it through", (authority) => authority, 200],
    ["does not let it through", () => OTHER, 403],
  ];
  test.each(meanwhile)("that comes while a connection is opened judges anew, and %s", async (_row, allow, status) => {
    await using path = await openHttp();
    const { dialler } = path.rig.context;
    const dial = dialler.dial.bind(dialler);
    dialler.dial = async (...where) => {
      const dialled = await dial(...where);
      dialler.dial = dial;
      path.rig.replace({ allow: [allow(path.authority)] });
      return dialled;
    };
    await path.client.send(path.request());
    expect((await takeAnswer(path.client)).status).toBe(status);
    expect(path.heard).toBe(status === 200 ? `GET / HTTP/1.1\r\nHost: ${path.authority}\r\n\r\n` : "");
  });

  test("cuts a WebSocket", async () => {
    const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    await using path = await openHttp(answering(upgraded));
    await path.client.send(path.request("GET /", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    await path.client.takeHead();
    path.rig.replace({ allow: [OTHER] });
    await path.client.rest();
    expect(path.client.error).toMatchObject({ code: "ECONNRESET" });
  });
});

describe("behind the site's proxy", () => {
  test("a request names its target in full, with the proxy's password and not the client's", async () => {
    await using proxy = await startOrigin(answering());
    const parsed = parseUpstream(`http://user:p%40ss@127.0.0.1:${proxy.port}`);
    if (!parsed.ok) throw new Error("no upstream");
    await using path = await openHttp(answering(), { settings: { upstream: parsed.value } });
    const ask = async (request: string): Promise<number> => {
      await path.client.send(request);
      return (await takeAnswer(path.client)).status;
    };
    expect(await ask(path.request("GET /x?y", "Proxy-Authorization: Basic bWluZQ==\r\n"))).toBe(200);
    expect(await ask(path.request("GET /z"))).toBe(200);
    expect(await ask("GET http://evil.example.org/ HTTP/1.1\r\nHost: evil.example.org\r\n\r\n")).toBe(403);
    const authorization = `Proxy-Authorization: Basic ${Buffer.from("user:p@ss").toString("base64")}`;
    const line = (target: string): string => `GET http://${path.authority}${target} HTTP/1.1\r\n${authorization}\r\nHost: ${path.authority}\r\n\r\n`;
    expect(Buffer.concat(proxy.heard).toString()).toBe(line("/x?y") + line("/z"));
    expect([proxy.connections, path.origin.connections]).toEqual([1, 0]);
    expect(path.rig.asked).toEqual([]);
  });

  test("a request that was written for it, password and all, goes nowhere else", async () => {
    await using proxy = await startOrigin(answering());
    const parsed = parseUpstream(`http://user:secret@127.0.0.1:${proxy.port}`);
    if (!parsed.ok) throw new Error("no upstream");
    await using path = await openHttp(answering(), { settings: { upstream: parsed.value } });
    const { dialler } = path.rig.context;
    const dial = dialler.dialUpstream.bind(dialler);
    dialler.dialUpstream = async (upstream) => {
      const dialled = await dial(upstream);
      path.rig.replace({ allow: [path.authority], settings: {} });
      return dialled;
    };
    await path.client.send(path.request() + path.request());
    expect([(await takeAnswer(path.client)).status, (await takeAnswer(path.client)).status]).toEqual([502, 200]);
    expect(path.heard).toBe(`GET / HTTP/1.1\r\nHost: ${path.authority}\r\n\r\n`);
    expect(proxy.heard).toEqual([]);
  });

  test("a proxy that asks for another password is a failure, not a question for the client", async () => {
    await using proxy = await startOrigin(answering("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"));
    const parsed = parseUpstream(`http://127.0.0.1:${proxy.port}`);
    if (!parsed.ok) throw new Error("no upstream");
    await using path = await openHttp(answering(), { settings: { upstream: parsed.value } });
    await path.client.send(path.request());
    expect(await takeAnswer(path.client)).toMatchObject({ status: 502, body: expect.stringContaining("password") });
  });

  test("a proxy that is not there is a failure", async () => {
    const parsed = parseUpstream("http://127.0.0.1:1");
    if (!parsed.ok) throw new Error("no upstream");
    await using path = await openHttp(answering(), { settings: { upstream: parsed.value } });
    await path.client.send(path.request());
    expect(await takeAnswer(path.client)).toMatchObject({ status: 502, body: expect.stringContaining("the site's proxy") });
    expect(path.origin.connections).toBe(0);
  });
});
