import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { answering, HOST, type HttpOptions, type HttpPath, listDecisions, openHttp, takeAnswer } from "./http-rig.ts";

/** The status and word of an answer, after a request that is let through to show that the way is open. */
async function ask(path: HttpPath, request: string): Promise<{ status: number; error: string | undefined; head: string; body: string }> {
  await path.client.send(request);
  const { status, head, body } = await takeAnswer(path.client);
  return { status, error: /\r\nx-proxy-error: (?<error>[^\r]*)\r\n/.exec(head)?.groups?.["error"], head, body };
}

function get(host: string, { method = "GET", fields = "" }: { method?: string; fields?: string } = {}): string {
  return `${method} http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`;
}

describe("a refusal", () => {
  const rows: readonly [row: string, request: (port: number) => string, status: number, error: string | undefined, decision: string, options?: HttpOptions][] = [
    ["of a host that no rule allows", () => get("evil.example.org"), 403, "blocked-by-allowlist", "deny not_allowed GET evil.example.org"],
    ["of a port that no rule allows", () => get(`${HOST}:1`), 403, "blocked-by-allowlist", `deny not_allowed GET ${HOST}`],
    ["of a blocked host", () => get("no.example.com"), 403, "blocked-by-denylist", "deny denied GET no.example.com", { block: ["no.example.com"] }],
    ["of an address that no rule lists", (port) => get(`127.0.0.1:${port}`), 403, "blocked-by-allowlist", "deny not_allowed GET 127.0.0.1"],
    ["of an allowed name that leads to a private address", (port) => get(`${HOST}:${port}`), 403, "blocked-by-allowlist", `deny not_allowed_local GET ${HOST}`, { allowPrivate: [] }],
    ["of a method in limited mode", (port) => get(`${HOST}:${port}`, { method: "POST" }), 403, "blocked-by-method-policy", `deny method_not_allowed POST ${HOST}`, { methods: "limited" }],
    ["of a method in small letters in limited mode", (port) => get(`${HOST}:${port}`, { method: "get" }), 403, "blocked-by-method-policy", `deny method_not_allowed get ${HOST}`, { methods: "limited" }],
    ["of an upgrade in limited mode", (port) => get(`${HOST}:${port}`, { fields: "Connection: Upgrade\r\nUpgrade: websocket\r\n" }), 403, "blocked-by-method-policy", `deny method_not_allowed GET ${HOST}`, { methods: "limited" }],
    ["of another Host than the URI's", (port) => `GET http://${HOST}:${port}/ HTTP/1.1\r\nHost: b.example.com:${port}\r\n\r\n`, 403, "blocked-by-policy", `deny host_mismatch GET ${HOST}`],
    ["of a Host that is not allowed", (port) => `GET http://${HOST}:${port}/ HTTP/1.1\r\nHost: evil.example.org\r\n\r\n`, 403, "blocked-by-policy", `deny host_mismatch GET ${HOST}`],
    ["of a Host with another port", (port) => `GET http://${HOST}:${port}/ HTTP/1.1\r\nHost: ${HOST}:81\r\n\r\n`, 403, "blocked-by-policy", `deny host_mismatch GET ${HOST}`],
    ["of everything while the proxy is off", (port) => get(`${HOST}:${port}`), 503, undefined, `deny proxy_disabled GET ${HOST}`, { settings: { enabled: false } }],
    ["of a socket of the machine as target", () => "GET unix:/var/run/docker.sock HTTP/1.1\r\nHost: localhost\r\n\r\n", 403, "blocked-by-policy", "deny unix_socket_unsupported - localhost"],
    ["of a socket of the machine in a field", () => get("localhost", { fields: "X-Unix-Socket: /var/run/docker.sock\r\n" }), 403, "blocked-by-policy", "deny unix_socket_unsupported - localhost"],
  ];
  test.each(rows)("%s", async (_row, request, status, error, decision, options = {}) => {
    await using path = await openHttp(answering(), options);
    const answer = await ask(path, request(path.origin.port));
    expect({ status: answer.status, error: answer.error }).toEqual({ status, error });
    expect(answer.head).toContain("\r\nContent-Type: application/json\r\n");
    expect(JSON.parse(answer.body)).toMatchObject({ status: "blocked", reason: decision.split(" ")[1], host: decision.split(" ")[3] });
    expect(listDecisions(path.rig.readLog())).toEqual([decision]);
    expect(path.origin.connections).toBe(0);
    // The same connection, and a request that is allowed: what was refused was the request, and nothing else.
    path.rig.replace({ allow: [`${HOST}:${path.origin.port}`], methods: "full", settings: {}, allowPrivate: ["127.0.0.0/8"] });
    expect((await ask(path, get(`${HOST}:${path.origin.port}`))).status).toBe(200);
  });

  test("says how to allow it", async () => {
    await using path = await openHttp();
    expect(JSON.parse((await ask(path, get("evil.example.org:81"))).body)).toEqual({ status: "blocked", host: "evil.example.org", port: 81, reason: "not_allowed", rule: null, hint: "agentbox policy allow evil.example.org:81" });
  });

  test("to HEAD has no body, and the connection goes on", async () => {
    await using path = await openHttp();
    await path.client.send(get("evil.example.org", { method: "HEAD" }));
    expect(await path.client.takeHead()).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*Content-Length: [1-9]/);
    expect((await ask(path, path.request())).status).toBe(200);
  });

  test("to HTTP/1.0 ends the connection", async () => {
    await using path = await openHttp();
    await path.client.send("GET http://evil.example.org/ HTTP/1.0\r\n\r\n");
    expect((await path.client.rest()).toString()).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*\r\nConnection: close\r\n\r\n\{/);
  });

  test("of a small body is told before the body came, and the connection goes on behind it", async () => {
    await using path = await openHttp();
    expect(await ask(path, get("evil.example.org", { method: "POST", fields: "Content-Length: 10\r\n" }))).toMatchObject({ status: 403 });
    await path.client.send("GET /", "12345", path.request());
    expect(await takeAnswer(path.client)).toMatchObject({ status: 200 });
    expect(path.heard).not.toContain("12345");
  });

  const bodies: readonly [row: string, fields: string][] = [
    ["a large body", "Content-Length: 1000000\r\n"],
    ["a chunked body", "Transfer-Encoding: chunked\r\n"],
    ["a body that the client waits to send", "Content-Length: 10\r\nExpect: 100-continue\r\n"],
  ];
  test.each(bodies)("of %s ends the connection, and the client can read it", async (_row, fields) => {
    await using path = await openHttp();
    path.client.socket.write(get("evil.example.org", { method: "POST", fields }) + "x".repeat(2_000_000));
    expect((await path.client.rest()).toString()).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*\r\nConnection: close\r\n\r\n\{/);
    // To close at once would be a reset, which may take the answer back.
    path.client.socket.end();
    while (!path.client.closed) await sleep(5);
    expect(path.client.error).toBeUndefined();
    expect(path.origin.connections).toBe(0);
  });
});

describe("the first reason that holds is told", () => {
  const malformed = "Content-Length: x\r\n";
  const rows: readonly [row: string, request: (port: number) => string, status: number, reason: string, options: HttpOptions][] = [
    ["malformed before disabled", (port) => get(`${HOST}:${port}`, { fields: malformed }), 400, "denied", { settings: { enabled: false } }],
    ["malformed before the host", () => get("evil.example.org", { fields: malformed }), 400, "denied", {}],
    ["a malformed host before disabled", () => get("a..example.com"), 400, "denied", { settings: { enabled: false } }],
    ["disabled before the host", () => get("evil.example.org"), 503, "proxy_disabled", { settings: { enabled: false } }],
    ["the host before the method", () => get("evil.example.org", { method: "POST" }), 403, "not_allowed", { methods: "limited" }],
    ["a blocked host before the method", () => get("no.example.com", { method: "POST" }), 403, "denied", { methods: "limited", block: ["no.example.com"] }],
    ["the host before another Host", () => "GET http://evil.example.org/ HTTP/1.1\r\nHost: a.example.com\r\n\r\n", 403, "not_allowed", {}],
    ["the method before the name is resolved", () => get("lost.example.com", { method: "POST" }), 403, "method_not_allowed", { methods: "limited", allow: ["lost.example.com:80"] }],
    ["the method before the address", (port) => get(`${HOST}:${port}`, { method: "POST" }), 403, "method_not_allowed", { methods: "limited", allowPrivate: [] }],
    ["the address before the dial", (port) => get(`${HOST}:${port}`), 403, "not_allowed_local", { allowPrivate: [] }],
  ];
  test.each(rows)("%s", async (_row, request, status, reason, options) => {
    await using path = await openHttp(answering(), options);
    expect((await ask(path, request(path.origin.port))).status).toBe(status);
    const [decision] = path.rig.readLog();
    expect(decision).toMatchObject({ kind: "decision", action: "deny", reason });
    expect(path.rig.asked.filter((name) => name !== HOST)).toEqual([]);
    expect(path.origin.connections).toBe(0);
  });
});

describe("a failure is no refusal", () => {
  test("where the name does not exist: 502", async () => {
    await using path = await openHttp(answering(), { allow: ["lost.example.com:80"] });
    const answer = await ask(path, get("lost.example.com"));
    expect(answer).toMatchObject({ status: 502, error: undefined });
    expect(answer.body).toContain("the name does not exist");
    expect((await ask(path, path.request())).status).toBe(200);
  });

  test("where nobody listens: 502, and the connection goes on", async () => {
    await using path = await openHttp(answering(), { allow: [`${HOST}:1`] });
    const answer = await ask(path, get(`${HOST}:1`));
    expect(answer).toMatchObject({ status: 502, error: undefined });
    expect(answer.body).toContain("ECONNREFUSED");
    expect((await ask(path, path.request())).status).toBe(200);
  });

  test("where the server ends without an answer: 502", async () => {
    await using path = await openHttp((socket) => void socket.once("data", () => socket.end()));
    expect((await ask(path, path.request("POST /"))).status).toBe(502);
  });

  test("where the server resets the connection: 502", async () => {
    await using path = await openHttp((socket) => void socket.once("data", () => socket.resetAndDestroy()));
    expect((await ask(path, path.request("POST /"))).body).toContain("reset the connection");
  });
});

describe("what is no request to a proxy", () => {
  const rows: readonly [row: string, request: string, sentence: string][] = [
    ["a path", `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "this is a proxy"],
    ["an asterisk", `OPTIONS * HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "this is a proxy"],
    ["a URI of https", `GET https://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "CONNECT"],
    ["a URI of ftp", `GET ftp://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "neither a path nor"],
    ["a host with an empty label", `GET http://a..example.com/ HTTP/1.1\r\nHost: a..example.com\r\n\r\n`, "empty label"],
    ["a number that is no address", `GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n`, "ends in a number"],
    ["a Host that is no host", `GET http://${HOST}/ HTTP/1.1\r\nHost: a..b\r\n\r\n`, "no host"],
    ["a host that is none, with another Host", `GET http://a..b/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "no host"],
    ["CONNECT with another Host that is none", `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: a..b\r\n\r\n`, "no host"],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"],
    ["a TLS hello", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000", "0x16"],
    ["SOCKS", "\u0005\u0001\u0000", "0x05"],
    ["an unfinished head", `GET http://${HOST}/ HTTP/1.1\r\nHo`, "middle of its head"],
  ];
  test.each(rows)("%s: 400 with one sentence, and written down", async (_row, request, sentence) => {
    await using path = await openHttp(answering(), { allow: [HOST] });
    path.client.socket.end(request);
    const answer = (await path.client.rest()).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain(sentence);
    expect(answer).not.toContain("x-proxy-error");
    expect(path.rig.readLog()).toEqual([expect.objectContaining({ kind: "decision", action: "deny", reason: "denied", detail: expect.stringContaining(sentence), host: expect.stringMatching(/^"/) })]);
    expect(path.origin.connections).toBe(0);
  });

  test("may be as long as it likes: its client can read the answer", async () => {
    await using path = await openHttp();
    path.client.socket.write(`GET / HTTP/1.0\r\n\r\n${"x".repeat(2_000_000)}`);
    expect((await path.client.rest()).toString()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    path.client.socket.end();
    while (!path.client.closed) await sleep(5);
    expect(path.client.error).toBeUndefined();
  });

  test("ends the connection, with whatever comes behind it", async () => {
    await using path = await openHttp();
    await path.client.send(`GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n${path.request("GET /smuggled")}`);
    expect((await path.client.rest()).toString()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*\r\nConnection: close\r\n/);
    expect(path.origin.connections).toBe(0);
  });
});

describe("CONNECT", () => {
  const rows: readonly [row: string, host: string, reason: string][] = [
    ["another allowed name", "b.example.com", "host_mismatch"],
    ["a name that is not allowed", "evil.example.org", "host_mismatch"],
    ["another port", `${HOST}:1`, "host_mismatch"],
  ];
  test.each(rows)("whose Host is %s is refused in plain text", async (_row, host, reason) => {
    await using path = await openHttp();
    const answer = await ask(path, `CONNECT ${path.authority} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(answer).toMatchObject({ status: 403, error: "blocked-by-policy" });
    expect(answer.head).toContain("Content-Type: text/plain");
    expect(listDecisions(path.rig.readLog())).toEqual([`deny ${reason} CONNECT ${HOST}`]);
    expect(path.origin.connections).toBe(0);
  });
});
