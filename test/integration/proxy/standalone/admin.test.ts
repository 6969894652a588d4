import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { afterEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../../../policy/errors.ts";
import type { AdminSubject } from "../../../../proxy/admin/admin-routes.ts";
import { serveAdmin } from "../../../../proxy/admin/admin-server.ts";
import { findTokenFile, makeToken, readTokenFile, removeTokenFile, writeTokenFile } from "../../../../proxy/admin/token-file.ts";
import type { WrittenLine } from "../../../../proxy/log/decision-log.ts";
import { findFreePort } from "./free-port.ts";

const TOKEN = "the-token";
const CONFIG: ReturnType<AdminSubject["describeConfig"]> = {
  version: 1, file: "f", log: "l", enabled: true, approve: false, mode: "full", mode_overridden: false, proxy_url: "p", socks_url: null, admin_url: "a", upstream_proxy: null,
  policy: { allowed_domains: [], denied_domains: [], allow_unix_sockets: [], allow_local_binding: false, allow_private: [] },
  mitm: { enabled: false, inspect: false, max_body_bytes: 1, ca_cert_path: "c", passthrough: [] }, restart_needed: [],
};

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

type Played = AdminSubject & { modes: string[]; emit: (line: WrittenLine) => void; listeners: Set<unknown> };

function playSubject(overrides: Partial<AdminSubject> = {}): Played {
  const modes: string[] = [];
  const listeners = new Set<(line: WrittenLine) => void>();
  return {
    modes,
    listeners,
    emit: (line) => listeners.forEach((take) => take(line)),
    troubles: () => [],
    describeConfig: () => CONFIG,
    describePatterns: () => ({ version: 1, allowed: [], denied: [] }),
    recentRefusals: (after) => [1, 2, 3].filter((seq) => seq > after).map(makeLine),
    setMode: (mode) => void modes.push(mode),
    reload: () => Promise.resolve({ added: ["a"], removed: [], changed: [], cut: 0, restart_needed: [] }),
    listen: (take) => {
      listeners.add(take);
      return () => void listeners.delete(take);
    },
    ...overrides,
  };
}

function makeLine(seq: number): WrittenLine {
  return { seq, text: `{"seq":${seq}}`, entry: { kind: "event", event: "start", detail: "", added: [], removed: [] } };
}

/** Nothing here should be a bug; the run fails with it. */
function fail(error: unknown): never {
  throw error;
}

async function start(subject: AdminSubject, where?: { path: string }): Promise<{ port: number; url: string }> {
  const port = await findFreePort();
  closers.push(await serveAdmin({ where: where ?? { address: "127.0.0.1", port }, token: TOKEN, subject, onBug: fail }));
  return { port, url: `http://127.0.0.1:${port}` };
}

type Asked = { port?: number; socketPath?: string; method?: string; path?: string; headers?: Record<string, string>; body?: string | Buffer; auth?: string | null };
type Answer = { status: number; headers: IncomingHttpHeaders; body: string };

async function ask({ auth = `Bearer ${TOKEN}`, method = "GET", path = "/health", headers = {}, body, ...where }: Asked): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const call = request({ host: "127.0.0.1", ...where, method, path, headers: { ...(auth === null ? {} : { authorization: auth }), ...headers } }, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
  });
  call.on("error", reject);
  call.end(body);
  return await promise;
}

describe("who may ask", () => {
  test.each<{ name: string; asked: (port: number) => Asked; status: number; error?: string }>([
    { name: "the right token on the right name", asked: () => ({}), status: 200 },
    { name: "localhost as the name", asked: (port) => ({ headers: { host: `localhost:${port}` } }), status: 200 },
    { name: "localhost in another spelling", asked: (port) => ({ headers: { host: `LOCALHOST.:${port}` } }), status: 200 },
    { name: "IPv6 loopback as the name", asked: (port) => ({ headers: { host: `[::1]:${port}` } }), status: 200 },
    { name: "no token", asked: () => ({ auth: null }), status: 401, error: "token" },
    { name: "another token", asked: () => ({ auth: "Bearer the-tokem" }), status: 401, error: "token" },
    { name: "a longer token", asked: () => ({ auth: `Bearer ${TOKEN}x` }), status: 401, error: "token" },
    { name: "an empty token", asked: () => ({ auth: "Bearer " }), status: 401, error: "token" },
    { name: "the token as a password", asked: () => ({ auth: `Basic ${Buffer.from(`x:${TOKEN}`).toString("base64")}` }), status: 401, error: "token" },
    { name: "the token in the address", asked: () => ({ auth: null, path: `/health?token=${TOKEN}` }), status: 401, error: "token" },
    { name: "a name that its owner lets lead to loopback", asked: (port) => ({ headers: { host: `evil.example:${port}` } }), status: 403, error: "Host" },
    { name: "a name that only begins like one of ours", asked: (port) => ({ headers: { host: `localhost.evil.example:${port}` } }), status: 403, error: "Host" },
    { name: "a name below localhost", asked: (port) => ({ headers: { host: `x.localhost:${port}` } }), status: 403, error: "Host" },
    { name: "our name on another port", asked: () => ({ headers: { host: "localhost:1" } }), status: 403, error: "Host" },
    { name: "our name without the port", asked: () => ({ headers: { host: "localhost" } }), status: 403, error: "Host" },
    { name: "another address", asked: (port) => ({ headers: { host: `192.0.2.1:${port}` } }), status: 403, error: "Host" },
    { name: "a web page", asked: () => ({ headers: { origin: "http://evil.example" } }), status: 403, error: "web page" },
    { name: "a web page of our own name", asked: (port) => ({ headers: { origin: `http://127.0.0.1:${port}` } }), status: 403, error: "web page" },
    { name: "a page of a file", asked: () => ({ headers: { origin: "null" } }), status: 403, error: "web page" },
  ])("$name: $status", async ({ asked, status, error }) => {
    const { port } = await start(playSubject());
    const answer = await ask({ port, ...asked(port) });
    expect(answer.status).toBe(status);
    expect(answer.body).toMatch(error === undefined ? /^ok\n$/ : new RegExp(`^\\{"error":"[^"]*${error}[^"]*"\\}\n$`));
  });

  test("a request with two names, or none, is no request of ours", async () => {
    const { port } = await start(playSubject());
    const send = async (head: string): Promise<string> => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const socket = connect(port, "127.0.0.1");
      socket.setEncoding("utf8");
      let text = "";
      socket.on("data", (chunk: string) => (text += chunk));
      socket.on("close", () => resolve(text));
      socket.end(`${head}\r\n`);
      return await promise;
    };
    const auth = `Authorization: Bearer ${TOKEN}\r\n`;
    expect(await send(`GET /health HTTP/1.1\r\nHost: localhost:${port}\r\n${auth}Connection: close\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await send(`GET /health HTTP/1.1\r\nHost: localhost:${port}\r\nHost: evil.example\r\n${auth}Connection: close\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
    expect(await send(`GET /health HTTP/1.1\r\n${auth}Connection: close\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
    expect(await send("nonsense\r\n")).toMatch(/^HTTP\/1\.1 400 .*\{"error":/s);
  });
});

function exactly(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[{}[\]?.]/g, "\\$&")}$`);
}

describe("what is answered", () => {
  test.each<{ name: string; asked: Asked; status: number; body: RegExp; allow?: string }>([
    { name: "health", asked: {}, status: 200, body: exactly("ok\n") },
    { name: "the configuration", asked: { path: "/config" }, status: 200, body: exactly(`${JSON.stringify(CONFIG)}\n`) },
    { name: "the patterns", asked: { path: "/patterns" }, status: 200, body: /^\{"version":1,"allowed":\[\],"denied":\[\]\}\n$/ },
    { name: "refusals", asked: { path: "/blocked" }, status: 200, body: exactly('{"version":1,"last":3,"blocked":[{"seq":1},{"seq":2},{"seq":3}]}\n') },
    { name: "refusals once more: they are never drained", asked: { path: "/blocked?after=1" }, status: 200, body: exactly('{"version":1,"last":3,"blocked":[{"seq":2},{"seq":3}]}\n') },
    { name: "no new refusals, with the number to ask for again", asked: { path: "/blocked?after=0007" }, status: 200, body: exactly('{"version":1,"last":7,"blocked":[]}\n') },
    { name: "refusals after no number", asked: { path: "/blocked?after=-1" }, status: 400, body: /^\{"error":"after is not the number/ },
    { name: "a mode", asked: { method: "POST", path: "/mode", body: '{"mode":"limited"}' }, status: 200, body: exactly('{"mode":"limited"}\n') },
    { name: "no mode", asked: { method: "POST", path: "/mode", body: '{"mode":"open"}' }, status: 400, body: /^\{"error":/ },
    { name: "a mode and something else", asked: { method: "POST", path: "/mode", body: '{"mode":"full","enabled":true}' }, status: 400, body: /^\{"error":/ },
    { name: "a mode that is no JSON", asked: { method: "POST", path: "/mode", body: "limited" }, status: 400, body: /^\{"error":/ },
    { name: "a reload", asked: { method: "POST", path: "/reload" }, status: 200, body: /^\{"added":\["a"\]/ },
    { name: "a reload by GET, such as an image of a page makes", asked: { path: "/reload" }, status: 405, body: /^\{"error":"POST alone/, allow: "POST" },
    { name: "a mode by PUT", asked: { method: "PUT", path: "/mode" }, status: 405, body: /^\{"error":/, allow: "POST" },
    { name: "health by POST", asked: { method: "POST" }, status: 405, body: /^\{"error":/, allow: "GET" },
    { name: "a path that is none", asked: { path: "/" }, status: 404, body: /^\{"error":"there is no such path/ },
    { name: "a body of 8 KiB", asked: { method: "POST", path: "/mode", body: `{"mode":"full"}${" ".repeat(8177)}` }, status: 200, body: exactly('{"mode":"full"}\n') },
    { name: "a body of one byte more", asked: { method: "POST", path: "/mode", body: `{"mode":"full"}${" ".repeat(8178)}` }, status: 413, body: /^\{"error":"a body of more than 8192 bytes"\}/ },
    { name: "a long body without a length", asked: { method: "POST", path: "/mode", body: Buffer.alloc(100_000, " "), headers: { "transfer-encoding": "chunked" } }, status: 413, body: /^\{"error":/ },
    { name: "a body that waits to be asked for", asked: { method: "POST", path: "/mode", body: '{"mode":"full"}', headers: { expect: "100-continue" } }, status: 200, body: exactly('{"mode":"full"}\n') },
  ])("$name", async ({ asked, status, body, allow }) => {
    const subject = playSubject();
    const { port } = await start(subject);
    const answer = await ask({ port, ...asked });
    expect(answer.status).toBe(status);
    expect(answer.body).toMatch(body);
    expect(answer.headers["allow"]).toBe(allow);
    expect(subject.modes).toEqual(asked.path === "/mode" && status === 200 ? [JSON.parse(answer.body).mode] : []);
  });

  test("what is wrong is told, and the proxy is not called down for it", async () => {
    const { port } = await start(playSubject({ troubles: () => ["the file is broken", "the log is full"] }));
    expect(await ask({ port })).toMatchObject({ status: 200, body: "degraded: the file is broken; the log is full\n" });
  });

  test("a reload that is refused tells every mistake", async () => {
    const { port } = await start(playSubject({ reload: () => Promise.reject(new ConfigError([{ what: "one" }, { what: "two" }])) }));
    expect(await ask({ port, method: "POST", path: "/reload" })).toMatchObject({ status: 422, body: '{"error":"one\\ntwo"}\n' });
  });
});

describe("events", () => {
  test("come one by one, numbered and named, and a client that goes away is forgotten", async () => {
    const subject = playSubject();
    const { port } = await start(subject);
    const { promise, resolve } = Promise.withResolvers<string>();
    const call = request({ host: "127.0.0.1", port, path: "/events", headers: { authorization: `Bearer ${TOKEN}` } }, (response) => {
      expect(response.headers["content-type"]).toBe("text/event-stream");
      subject.emit(makeLine(7));
      response.setEncoding("utf8").once("data", resolve);
    });
    call.end();
    expect(await promise).toBe('id: 7\nevent: event\ndata: {"seq":7}\n\n');
    call.destroy();
    await expect.poll(() => subject.listeners.size).toBe(0);
  });

  test("a client that does not read is cut off, and holds no more than a megabyte", async () => {
    const subject = playSubject();
    const { port } = await start(subject);
    const socket = connect(port, "127.0.0.1");
    closers.push(() => void socket.destroy());
    socket.on("error", () => undefined);
    socket.write(`GET /events HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    socket.pause();
    await expect.poll(() => subject.listeners.size).toBe(1);
    const line = { ...makeLine(1), text: "x".repeat(64 * 1024) };
    for (let count = 0; count < 1000 && subject.listeners.size > 0; count += 1) {
      subject.emit(line);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(subject.listeners.size).toBe(0);
  });
});

describe("a socket in the file system", () => {
  test("is its owner's alone, needs the token as well, and takes the place of one that nobody answers on", async () => {
    const dir = mkdtempSync(`${tmpdir()}/agentbox-admin-`);
    closers.push(() => rmSync(dir, { recursive: true }));
    const path = `${dir}/admin.sock`;
    const other = spawn(process.execPath, ["-e", `require("net").createServer().listen(${JSON.stringify(path)}, () => console.log("ready"))`], { stdio: ["ignore", "pipe", "inherit"] });
    await once(other.stdout, "data");
    await expect(start(playSubject(), { path })).rejects.toMatchObject({ code: "EADDRINUSE" });
    other.kill("SIGKILL");
    await once(other, "exit");
    expect(existsSync(path)).toBe(true);
    await start(playSubject(), { path });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await ask({ socketPath: path })).toMatchObject({ status: 200 });
    expect(await ask({ socketPath: path, auth: null })).toMatchObject({ status: 401 });
  });
});

describe("the token file", () => {
  test("is its owner's alone, replaces a stale one, and is removed only by who wrote it", () => {
    const dir = mkdtempSync(`${tmpdir()}/agentbox-admin-`);
    closers.push(() => rmSync(dir, { recursive: true }));
    const file = findTokenFile(`${dir}/proxy`, { address: "::1", port: 8080 });
    const [first, second] = [makeToken(), makeToken()];
    expect(first).not.toBe(second);
    writeTokenFile(file, first);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(`${dir}/proxy`).mode & 0o777).toBe(0o700);
    writeFileSync(`${dir}/elsewhere`, "untouched");
    writeTokenFile(file, second);
    removeTokenFile(file, first);
    expect(readTokenFile(file)).toBe(second);
    removeTokenFile(file, second);
    expect(existsSync(file)).toBe(false);
    expect(readTokenFile(file)).toBeUndefined();
  });

  test("each place of an admin API has a file of its own", () => {
    const places = [{ address: "127.0.0.1", port: 8080 }, { address: "127.0.0.1", port: 8081 }, { address: "::1", port: 8080 }, { path: "/a/b" }, { path: "/a_b" }];
    expect(new Set(places.map((place) => findTokenFile("/d", place))).size).toBe(places.length);
  });
});
