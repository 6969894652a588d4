import { describe, expect, test } from "vitest";
import type { HttpInside } from "../../../../proxy/web-context.ts";
import { answering, HOST, listDecisions, openHttp, OTHER, takeAnswer } from "./http-rig.ts";

const client: HttpInside["client"] = { address: "192.0.2.9", uid: 1000, pid: null, command: null };
/** From a redirected port: only the request says where to. */
const redirected = (port: number): HttpInside => ({ scheme: "http", port, host: undefined, protocol: "http", client });
/** In a tunnel whose target is judged. */
const inTunnel = (port: number): HttpInside => ({ scheme: "http", port, host: HOST, protocol: "https-connect", client });
/** In TLS that was opened, with a server that cannot be reached. */
const unreachable = (port: number): HttpInside => ({ scheme: "https", port, host: HOST, protocol: "tls-sni", client, openUpstream: () => Promise.resolve({ ok: false, status: 502, why: "there" }) });

const ask = (target: string, host: string | undefined, method = "GET"): string => `${method} ${target} HTTP/1.1\r\n${host === undefined ? "" : `Host: ${host}\r\n`}\r\n`;

type Row = readonly [row: string, request: (authority: string, port: number) => string, status: number, decision: string];

/** The answer to a row, its decision, and whether the server was reached. */
async function answerTo(inside: (port: number) => HttpInside, request: Row[1]): Promise<{ status: number; decisions: string[]; reached: boolean }> {
  await using path = await openHttp(answering(), { inside });
  await path.client.send(request(path.authority, path.origin.port));
  const { status } = await takeAnswer(path.client);
  return { status, decisions: listDecisions(path.rig.readLog()), reached: path.origin.connections > 0 };
}

describe("on a redirected port, where Host decides,", () => {
  const rows: readonly Row[] = [
    ["an allowed Host is let through", (authority) => ask("/", authority), 200, `allow allowed GET ${HOST}`],
    ["its port need not be named", () => ask("/", HOST), 200, `allow allowed GET ${HOST}`],
    ["another spelling is the same Host", () => ask("/", "A.EXAMPLE.com."), 200, `allow allowed GET ${HOST}`],
    ["a URI that agrees is let through", (authority) => ask(`http://${authority}/`, authority), 200, `allow allowed GET ${HOST}`],
    ["OPTIONS for the server as a whole is let through", (authority) => ask("*", authority, "OPTIONS"), 200, `allow allowed OPTIONS ${HOST}`],
    ["a Host that is not allowed is refused", () => ask("/", "evil.example.org"), 403, "deny not_allowed GET evil.example.org"],
    ["a Host with another port is refused", () => ask("/", `${HOST}:1`), 403, `deny host_mismatch GET ${HOST}`],
    ["a URI that names another allowed host is refused", (authority) => ask(`http://${OTHER}/`, authority), 403, `deny host_mismatch GET ${OTHER}`],
    ["a URI with another port is refused", (authority) => ask(`http://${HOST}:1/`, authority), 403, `deny host_mismatch GET ${HOST}`],
    ["an allowed URI with a Host that is not is refused", () => ask(`http://${HOST}/`, "evil.example.org"), 403, `deny host_mismatch GET ${HOST}`],
    ["an address as Host is refused where it is not listed", (_authority, port) => ask("/", `127.0.0.1:${port}`), 403, "deny not_allowed GET 127.0.0.1"],
    ["no Host is malformed", () => ask("/", undefined), 400, 'deny denied - "(malformed request)"'],
    ["no Host is malformed in HTTP/1.0 too", () => "GET / HTTP/1.0\r\n\r\n", 400, 'deny denied - "(malformed request)"'],
    ["a URI of https is malformed", (authority) => ask(`https://${authority}/`, authority), 400, 'deny denied - "(malformed request)"'],
    ["CONNECT is malformed", (authority) => ask(authority, authority, "CONNECT"), 400, 'deny denied - "(malformed request)"'],
    ["a socket of the machine is malformed", (authority) => ask("unix:/run/x", authority), 400, 'deny denied - "(malformed request)"'],
  ];
  test.each(rows)("%s", async (_row, request, status, decision) => {
    expect(await answerTo(redirected, request)).toEqual({ status, decisions: [decision], reached: status === 200 });
  });

  test("a request without Host is malformed, whatever stands in its place and however many came before", async () => {
    await using path = await openHttp(answering(), { inside: redirected });
    const named = ask("/", path.authority);
    for (let count = 0; count < 3; count += 1) {
      await path.client.send(named);
      expect((await takeAnswer(path.client)).status).toBe(200);
    }
    await path.client.send(named.replace("HTTP/1.1", "HTTP/1.0").replace("Host", "Hose"));
    expect((await takeAnswer(path.client)).status).toBe(400);
  });

  test("each request on a connection is judged on its own, and the log says whose it is", async () => {
    await using path = await openHttp(answering(), { inside: redirected });
    await path.client.send(ask("/1", path.authority) + ask("/2", "evil.example.org") + ask("/3", `${OTHER}:${path.origin.port}`));
    const statuses = [];
    for (let count = 0; count < 3; count += 1) statuses.push((await takeAnswer(path.client)).status);
    expect(statuses).toEqual([200, 403, 200]);
    expect(path.heard).not.toContain("/2");
    expect(path.rig.readLog()[0]).toMatchObject({ protocol: "http", port: path.origin.port, client });
  });
});

describe("in a tunnel, which every request has to name,", () => {
  const rows: readonly Row[] = [
    ["the same Host is let through", (authority) => ask("/", authority), 200, `allow allowed GET ${HOST}`],
    ["the same Host without the port is let through", () => ask("/", HOST), 200, `allow allowed GET ${HOST}`],
    ["another spelling is the same", () => ask("/", "A.example.COM."), 200, `allow allowed GET ${HOST}`],
    ["a URI that agrees is let through", (authority) => ask(`http://${authority}/`, authority), 200, `allow allowed GET ${HOST}`],
    ["another allowed Host is refused", () => ask("/", OTHER), 403, `deny host_mismatch GET ${HOST}`],
    ["a Host that is not allowed is refused", () => ask("/", "evil.example.org"), 403, `deny host_mismatch GET ${HOST}`],
    ["the same Host with another port is refused", () => ask("/", `${HOST}:1`), 403, `deny host_mismatch GET ${HOST}`],
    ["another URI with the same Host is refused", (authority) => ask(`http://${OTHER}/`, authority), 403, `deny host_mismatch GET ${HOST}`],
    ["the same URI with another Host is refused", (authority) => ask(`http://${authority}/`, OTHER), 403, `deny host_mismatch GET ${HOST}`],
    ["its address as Host is refused", (_authority, port) => ask("/", `127.0.0.1:${port}`), 403, `deny host_mismatch GET ${HOST}`],
    ["a Host that is none is malformed", () => ask("/", "a..b"), 400, 'deny denied - "(malformed request)"'],
    ["CONNECT is malformed", (authority) => ask(authority, authority, "CONNECT"), 400, 'deny denied - "(malformed request)"'],
  ];
  test.each(rows)("%s", async (_row, request, status, decision) => {
    expect(await answerTo(inTunnel, request)).toEqual({ status, decisions: [decision], reached: status === 200 });
  });

  test("a second request with another Host is refused", async () => {
    await using path = await openHttp(answering(), { inside: inTunnel });
    await path.client.send(ask("/1", path.authority) + ask("/2", OTHER));
    expect([(await takeAnswer(path.client)).status, (await takeAnswer(path.client)).status]).toEqual([200, 403]);
    expect(path.rig.readLog()[0]).toMatchObject({ protocol: "https-connect", client });
  });
});

describe("in opened TLS", () => {
  test("what goes on leaves by the way that verifies, and by no other; Host is canonical for https", async () => {
    const opened: string[] = [];
    const inside = (port: number): HttpInside => ({
      scheme: "https",
      port,
      host: HOST,
      protocol: "tls-sni",
      client,
      openUpstream: (admitted) => {
        opened.push(`${admitted.name}:${admitted.port}`);
        return Promise.resolve({ ok: false, status: 502, why: "the certificate is not valid" });
      },
    });
    await using path = await openHttp(answering(), { inside });
    await path.client.send(ask("/", path.authority) + ask(`https://${path.authority}/`, path.authority) + ask(`http://${path.authority}/`, path.authority));
    const answers = [await takeAnswer(path.client), await takeAnswer(path.client), await takeAnswer(path.client)];
    expect(answers.map(({ status }) => status)).toEqual([502, 502, 400]);
    expect(answers[0]?.body).toContain("the certificate is not valid");
    expect(opened).toEqual([path.authority, path.authority]);
    expect(path.origin.connections).toBe(0);
    expect(listDecisions(path.rig.readLog())).toEqual([`allow allowed GET ${HOST}`, 'deny denied - "(malformed request)"']);
  });

  test("limited mode sees methods", async () => {
    await using path = await openHttp(answering(), { inside: unreachable, methods: "limited" });
    await path.client.send(ask("/", path.authority) + ask("/", path.authority, "POST"));
    expect([(await takeAnswer(path.client)).status, (await takeAnswer(path.client)).status]).toEqual([502, 403]);
    expect(listDecisions(path.rig.readLog())).toEqual([`allow allowed GET ${HOST}`, `deny method_not_allowed POST ${HOST}`]);
  });
});
