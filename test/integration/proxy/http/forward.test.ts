import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { RawClient } from "../tunnel/raw-client.ts";
import { answering, HOST, listDecisions, OK, openHttp, OTHER, takeAnswer } from "./http-rig.ts";

describe("a plain request", () => {
  test("goes to the server in origin form, and its answer comes back byte for byte", async () => {
    const answer = "HTTP/1.1 200 Fine\r\nX-a: 1\r\nx-A:  2 \r\nContent-Length: 5\r\n\r\nhello";
    await using path = await openHttp(answering(answer));
    await path.client.send(path.request("GET /x?y=1", "X-Order: 1\r\nx-order: 2\r\nUser-Agent: test\r\n"));
    expect((await path.client.take(answer.length)).toString()).toBe(answer);
    expect(path.heard).toBe(`GET /x?y=1 HTTP/1.1\r\nHost: ${path.authority}\r\nX-Order: 1\r\nx-order: 2\r\nUser-Agent: test\r\n\r\n`);
    expect(listDecisions(path.rig.readLog())).toEqual([`allow allowed GET ${HOST}`]);
  });

  test("is the same in segments of one byte", async () => {
    await using path = await openHttp();
    await path.client.trickle(Buffer.from(path.request("GET /slow", "X-A: 1\r\n")));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200, body: "ok" });
    expect(path.heard).toBe(`GET /slow HTTP/1.1\r\nHost: ${path.authority}\r\nX-A: 1\r\n\r\n`);
  });

  test("is the same where its name is found later", async () => {
    await using path = await openHttp(answering(), { resolvesLate: true });
    const request = path.request("GET /late", "X-A: 1\r\n");
    await using other = await RawClient.open(path.rig.port);
    path.client.socket.write(request + request);
    // All clients are read into the same buffer.
    other.socket.write(path.request("GET /other", "X-B: 22222222222\r\n"));
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200 });
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200 });
    expect(await takeAnswer(other)).toMatchObject({ status: 200 });
    expect(path.heard.match(/GET \/late HTTP\/1\.1\r\nHost: [^\r]*\r\nX-A: 1\r\n\r\n/g)).toHaveLength(2);
    expect(path.heard).toContain(`GET /other HTTP/1.1\r\nHost: ${path.authority}\r\nX-B: 22222222222\r\n\r\n`);
  });

  test("of a client that is gone before its name is found goes nowhere", async () => {
    await using path = await openHttp(answering(), { resolvesLate: true });
    await path.client.send(path.request());
    while (path.rig.asked.length === 0) await sleep(1);
    path.client.socket.resetAndDestroy();
    await sleep(100);
    expect(path.origin.connections).toBe(0);
  });

  test("tells the server nothing of the proxy and its client", async () => {
    await using path = await openHttp();
    await path.client.send(path.request("GET /", "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"));
    await takeAnswer(path.client);
    expect(path.heard).toBe(`GET / HTTP/1.1\r\nHost: ${path.authority}\r\n\r\n`);
  });

  test("names its host in canonical form", async () => {
    await using path = await openHttp();
    const { port } = path.origin;
    await path.client.send(`GET http://A.Example.COM.:${port}/ HTTP/1.1\r\nHost: a.EXAMPLE.com:${port}\r\n\r\n`);
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200 });
    expect(path.heard).toBe(`GET / HTTP/1.1\r\nHost: ${path.authority}\r\n\r\n`);
    expect(listDecisions(path.rig.readLog())).toEqual([`allow allowed GET ${HOST}`]);
  });

  test("to a listed address goes to that address", async () => {
    await using path = await openHttp(answering(), { allow: ["127.0.0.1"] });
    const { port } = path.origin;
    path.rig.replace({ allow: [`127.0.0.1:${port}`] });
    await path.client.send(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200 });
    expect(path.heard).toContain(`\r\nHost: 127.0.0.1:${port}\r\n`);
  });

  const versions: readonly [row: string, response: string, expected: string][] = [
    ["a body", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"],
    ["a body that the connection ends", "HTTP/1.0 200 OK\r\n\r\nok", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"],
  ];
  test.each(versions)("of HTTP/1.0 goes on as such, gets %s, and its connection ends", async (_row, response, expected) => {
    await using path = await openHttp((socket) => void socket.once("data", () => socket.end(response)));
    await path.client.send(`GET http://${path.authority}/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`);
    expect((await path.client.rest()).toString()).toBe(expected);
    expect(path.heard).toBe(`GET / HTTP/1.0\r\nHost: ${path.authority}\r\n\r\n`);
  });

  test("of HTTP/1.0 gets no interim answer, which it does not know", async () => {
    await using path = await openHttp((socket) => void socket.once("data", () => socket.end(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)));
    await path.client.send(`GET http://${path.authority}/ HTTP/1.0\r\n\r\n`);
    expect((await path.client.rest()).toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });
});

describe("requests on one connection", () => {
  test("are judged each on its own", async () => {
    await using path = await openHttp();
    const { client, origin } = path;
    const ask = async (host: string): Promise<number> => {
      await client.send(`GET http://${host}:${origin.port}/ HTTP/1.1\r\nHost: ${host}:${origin.port}\r\n\r\n`);
      return (await takeAnswer(client)).status;
    };
    expect([await ask(HOST), await ask("evil.example.org"), await ask(OTHER), await ask("evil.example.org"), await ask(HOST)]).toEqual([200, 403, 200, 403, 200]);
    expect(path.heard).not.toContain("evil");
    expect(listDecisions(path.rig.readLog())).toEqual([`allow allowed GET ${HOST}`, "deny not_allowed GET evil.example.org", `allow allowed GET ${OTHER}`]);
  });

  const different: readonly [row: string, request: (host: string, port: number) => string, status: number, decision: string][] = [
    ["in nothing", (host) => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 200, `allow allowed GET ${HOST}`],
    ["in its path", (host) => `GET http://${host}/other?x HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 200, `allow allowed GET ${HOST}`],
    ["in its Host", (host, port) => `GET http://${host}/ HTTP/1.1\r\nHost: ${OTHER}:${port}\r\n\r\n`, 403, `deny host_mismatch GET ${HOST}`],
    ["in its URI", (host, port) => `GET http://c.example.com:${port}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 403, "deny not_allowed GET c.example.com"],
    ["in its port", (host) => `GET http://${host}1/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 400, 'deny denied - "(malformed request)"'],
    ["in its method", (host) => `PUT http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 403, `deny method_not_allowed PUT ${HOST}`],
    ["in its form", (host) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 400, 'deny denied - "(malformed request)"'],
    ["in its scheme", (host) => `GET https://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 400, 'deny denied - "(malformed request)"'],
    ["in that it asks for another protocol", (host) => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 403, `deny method_not_allowed GET ${HOST}`],
    ["in that it names a socket", (host) => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nX-Unix-Socket: /run/x\r\n\r\n`, 403, "deny unix_socket_unsupported - localhost"],
    ["in that it has no Host", (host) => `GET http://${host}/ HTTP/1.0\r\n\r\n`, 200, `allow allowed GET ${HOST}`],
  ];
  test.each(different)("are judged as what they are, where one differs from those before %s", async (_row, request, status, decision) => {
    await using path = await openHttp((socket) => void socket.on("data", () => socket.write(OK)), { methods: "limited" });
    for (let count = 0; count < 3; count += 1) {
      await path.client.send(path.request());
      expect((await takeAnswer(path.client)).status).toBe(200);
    }
    await path.client.send(request(path.authority, path.origin.port));
    expect((await takeAnswer(path.client)).status).toBe(status);
    expect(listDecisions(path.rig.readLog())).toEqual([...new Set([`allow allowed GET ${HOST}`, decision])]);
  });

  test("that come together are answered in order, refusals among them", async () => {
    await using path = await openHttp(answering((head) => OK.replace("ok", /\/(?<number>..) /.exec(head)?.groups?.["number"] ?? "??")));
    const evil = "GET http://evil.example.org/ HTTP/1.1\r\nHost: evil.example.org\r\n\r\n";
    await path.client.send(path.request("GET /01") + evil + path.request("POST /02", "Content-Length: 4\r\n", "body") + path.request("HEAD /03").replace("HEAD", "GET") + evil + path.request("GET /04"));
    const answers = [];
    for (let count = 0; count < 6; count += 1) answers.push(await takeAnswer(path.client));
    expect(answers.map(({ status, body }) => (status === 200 ? body : status))).toEqual(["01", 403, "02", "03", 403, "04"]);
    expect(path.heard).toContain("\r\n\r\nbodyGET /03 ");
  });

  test("end with the one that says so", async () => {
    await using path = await openHttp();
    await path.client.send(path.request("GET /1", "Connection: close\r\n") + path.request("GET /2"));
    expect((await path.client.rest()).toString()).toBe("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    expect(path.heard).not.toContain("/2");
  });

  test("go on after an empty line that a client left behind (RFC 9112 2.2)", async () => {
    await using path = await openHttp();
    await path.client.send(`${path.request("POST /", "Content-Length: 2\r\n", "hi")}\r\n${path.request()}`);
    expect([(await takeAnswer(path.client)).status, (await takeAnswer(path.client)).status]).toEqual([200, 200]);
  });

  test("are written down with their bytes, one flow each", async () => {
    await using path = await openHttp();
    const request = path.request();
    await path.client.send(request + request);
    await takeAnswer(path.client);
    await takeAnswer(path.client);
    path.rig.context.access.log.close();
    const traffic = path.rig.readLog().filter(({ kind }) => kind === "traffic");
    expect(traffic).toEqual([expect.objectContaining({ protocol: "http", method: "GET", host: HOST, port: path.origin.port, flows: 2, bytesUp: 2 * request.length, bytesDown: 2 * OK.length, cut: false })]);
  });
});

describe("clients side by side", () => {
  test("share connections to one server, one after the other", async () => {
    await using path = await openHttp();
    for (let count = 0; count < 5; count += 1) {
      await using client = await RawClient.open(path.rig.port);
      await client.send(path.request());
      expect((await takeAnswer(client)).status).toBe(200);
    }
    expect(path.origin.connections).toBe(1);
  });

  test("never share one to another name, though it leads to the same address", async () => {
    await using path = await openHttp();
    const { port } = path.origin;
    await path.client.send(path.request());
    await takeAnswer(path.client);
    await path.client.send(`GET http://${OTHER}:${port}/ HTTP/1.1\r\nHost: ${OTHER}:${port}\r\n\r\n`);
    await takeAnswer(path.client);
    expect(path.origin.connections).toBe(2);
  });
});
