import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import { renderHost } from "../../../../policy/host-name.ts";
import { makeAuthority } from "../../../../proxy/interception/authority.ts";
import { mergeTrust } from "../../../../proxy/interception/trust-bundle.ts";
import { serveSocks } from "../../../../proxy/socks/socks5.ts";
import { serveTls } from "../../../../proxy/tls/tls-listener.ts";
import type { Rig, RigOptions } from "../web-rig.ts";
import { askTunnel, type Authorities, makeAuthorities, startHttp2, startHttps, startInterception } from "./interception-rig.ts";

const run = promisify(execFile);

let authorities: Authorities;
let dir = "";
beforeAll(async () => {
  authorities = await makeAuthorities();
  dir = mkdtempSync(path.join(tmpdir(), "agentbox-trust-"));
  writeFileSync(path.join(dir, "bundle.pem"), mergeTrust({ own: authorities.own.certPem, user: [], system: "" }));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function open(options: Partial<RigOptions> & { names?: readonly string[] } = {}) {
  const stack = new AsyncDisposableStack();
  const names = options.names ?? ["a.example"];
  const origin = stack.use(await startHttps(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", (asked: IncomingMessage, response: ServerResponse) => response.end(`${asked.method} ${asked.headers.host}`))));
  const target = `a.example:${origin.port}`;
  const rig = stack.use(await startInterception(authorities, { allow: names.map((name) => `${name}:${origin.port}`), hosts: Object.fromEntries(names.map((name) => [name, ["127.0.0.1"]])), ...options }));
  return { origin, target, rig, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Speaks TLS in a tunnel, and gives the name of whoever signed the certificate. */
async function readIssuer(rig: Rig, target: string, options: ConnectionOptions = {}): Promise<string> {
  const tls = connectTls({ socket: await askTunnel(rig, target), servername: target.slice(0, target.lastIndexOf(":")), rejectUnauthorized: false, ...options });
  await once(tls, "secureConnect");
  const issuer = tls.getPeerX509Certificate()?.issuer ?? "";
  tls.destroy();
  return issuer;
}

/** The first bytes of a client of TLS. */
async function makeHello(servername: string): Promise<Buffer> {
  return await new Promise((resolve) => {
    const socket = new Duplex({ read: () => undefined, write: (bytes: Buffer, _encoding, done) => (resolve(bytes), done()) });
    connectTls({ socket, servername }).on("error", () => undefined);
  });
}

const events = (rig: Rig, event: string): DecisionRecord[] => rig.readLog().filter((line) => line.kind === "event" && line.event === event);

describe("whose TLS is opened", () => {
  test("that of all hosts, but for those that pass through", async () => {
    await using opened = await open({ names: ["a.example", "pinned.example"], settings: { passesThrough: (host) => renderHost(host) === "pinned.example" } });
    const { rig, origin } = opened;
    expect(await readIssuer(rig, `a.example:${origin.port}`)).toContain("AgentBox interception authority");
    expect(await readIssuer(rig, `pinned.example:${origin.port}`)).toContain("AgentBox lab CA");
    expect(events(rig, "certificate-issued")).toHaveLength(1);
  });

  test("nobody's where interception is off", async () => {
    await using opened = await open({ settings: { intercept: false } });
    expect(await readIssuer(opened.rig, opened.target)).toContain("AgentBox lab CA");
  });

  test("a host that passes through is refused in limited mode: nobody could see its methods", async () => {
    await using opened = await open({ names: ["a.example", "pinned.example"], methods: "limited", settings: { passesThrough: (host) => renderHost(host) === "pinned.example" } });
    const { rig, origin } = opened;
    await expect(askTunnel(rig, `pinned.example:${origin.port}`)).rejects.toThrow(/^HTTP\/1.1 403 .*x-proxy-error: blocked-by-mitm-required/s);
    expect(await readIssuer(rig, `a.example:${origin.port}`)).toContain("AgentBox interception authority");
    expect(rig.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", action: "deny", reason: "mitm_required", host: "pinned.example" }));
  });

  test("of a tunnel that was granted for another name, nobody's: it is refused ahead of any certificate", async () => {
    await using opened = await open({ names: ["a.example", "b.example"] });
    await expect(readIssuer(opened.rig, opened.target, { servername: "b.example" })).rejects.toThrow(/access denied/);
    expect(events(opened.rig, "certificate-issued")).toEqual([]);
    expect(opened.rig.readLog()).toContainEqual(expect.objectContaining({ kind: "decision", action: "deny", reason: "host_mismatch", protocol: "tls-sni" }));
  });
});

describe("a client that does not trust the authority", () => {
  test("ends the handshake, and the log says what to do", async () => {
    await using opened = await open();
    writeFileSync(path.join(dir, "other.pem"), (await makeAuthority()).certPem);
    await expect(run("curl", ["-sS", "--proxy", `http://127.0.0.1:${opened.rig.port}`, "--cacert", path.join(dir, "other.pem"), `https://${opened.target}/`])).rejects.toThrow(/certificate/);
    await expect.poll(() => events(opened.rig, "certificate-refused")).toEqual([expect.objectContaining({ detail: expect.stringMatching(/^a client does not accept the certificate made for a\.example \(unknown ca\): .*mitm\.passthrough/) })]);
    await expect.poll(() => opened.rig.context.flows.size).toBe(0);
  });

  test("and says nothing any more has its connection ended after a while", async () => {
    await using opened = await open();
    const socket = await askTunnel(opened.rig, opened.target);
    socket.resume().write(await makeHello("a.example"));
    await expect.poll(() => events(opened.rig, "certificate-issued")).toHaveLength(1);
    expect(opened.rig.context.flows.size).toBe(1);
    await new Promise((resolve) => void socket.once("close", resolve));
    await expect.poll(() => opened.rig.context.flows.size).toBe(0);
  });
});

describe("an authority whose time is over", () => {
  test("lets nothing through unopened, and the log says why", async () => {
    const old = { ...authorities, own: await makeAuthority(-0.01) };
    const origin = await startHttps(await authorities.issuer.contextFor("a.example"), () => undefined);
    const target = `a.example:${origin.port}`;
    await using rig = await startInterception(old, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    await expect(readIssuer(rig, target)).rejects.toThrow(/ECONNRESET|disconnected/);
    expect(rig.readLog()).toContainEqual(expect.objectContaining({ action: "deny", reason: "proxy_disabled", detail: expect.stringMatching(/the authority for interception is valid until/) }));
    expect(rig.context.flows.size).toBe(0);
    await origin[Symbol.asyncDispose]();
  });
});

/** Speaks TLS and asks on a connection to the proxy, after other words that are each answered. */
const secure = async (rig: Rig, hello: readonly Buffer[], port: number): Promise<string> => {
  const socket = connectTcp(rig.port, "127.0.0.1");
  for (const bytes of hello) {
    socket.write(bytes);
    await once(socket, "data");
  }
  const tls: TLSSocket = connectTls({ socket, servername: "a.example", ca: authorities.own.certPem });
  tls.write(`GET / HTTP/1.1\r\nHost: a.example:${port}\r\nConnection: close\r\n\r\n`);
  return await text(tls);
};

describe("other ways to a host", () => {
  test("SOCKS: what is inside is judged all the same", async () => {
    await using opened = await open({ serve: serveSocks });
    const { origin, rig } = opened;
    const name = Buffer.from("a.example");
    const hello = [Buffer.from([5, 1, 0]), Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([origin.port >> 8, origin.port & 0xff])])];
    expect(await secure(rig, hello, origin.port)).toContain(`GET a.example:${origin.port}`);
    expect(rig.readLog()).toContainEqual(expect.objectContaining({ protocol: "socks5-tcp", method: "GET", action: "allow" }));
  });

  test("TLS that was redirected to the proxy: the server is dialled for when a request is there", async () => {
    const origin = await startHttps(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", (asked: IncomingMessage, response: ServerResponse) => response.end(`${asked.method} ${asked.headers.host}`)));
    await using rig = await startInterception(authorities, { allow: [`a.example:${origin.port}`], hosts: { "a.example": ["127.0.0.1"] }, serve: (client, context) => serveTls(client, { port: origin.port }, context) });
    expect(await secure(rig, [], origin.port)).toContain(`GET a.example:${origin.port}`);
    expect(rig.readLog()).toContainEqual(expect.objectContaining({ protocol: "tls-sni", method: "GET", action: "allow" }));
    expect(origin.connections()).toBe(1);
    await origin[Symbol.asyncDispose]();
  });
});

describe("a flood of names below a wildcard", () => {
  test("is bounded in the log, and the proxy goes on", async () => {
    const origin = await startHttps(await authorities.issuer.contextFor("a.example"), () => undefined);
    const names = Array.from({ length: 300 }, (_, index) => `h${index}.wild.example`);
    await using rig = await startInterception(authorities, { allow: [`*.wild.example:${origin.port}`], hosts: Object.fromEntries(names.map((name) => [name, ["127.0.0.1"]])) });
    const issuers = new Set<string>();
    for (let at = 0; at < names.length; at += 20) for (const issuer of await Promise.all(names.slice(at, at + 20).map((name) => readIssuer(rig, `${name}:${origin.port}`)))) issuers.add(issuer);
    expect(issuers.size).toBe(1);
    const written = events(rig, "certificate-issued").length;
    expect(written).toBeGreaterThanOrEqual(100);
    expect(written).toBeLessThan(200);
    await origin[Symbol.asyncDispose]();
  });
});

const curl = async (rig: Rig, ...args: string[]): Promise<string> => (await run("curl", ["-sS", "--proxy", `http://127.0.0.1:${rig.port}`, "--cacert", path.join(dir, "bundle.pem"), "-w", " %{http_version} %{http_code}", ...args])).stdout;

describe("real clients", () => {
  test("curl speaks HTTP/2 and HTTP/1.1", async () => {
    const origin = await startHttp2(await authorities.issuer.contextFor("a.example"), (server) => void server.on("stream", (stream, headers) => {
      stream.respond({ ":status": 200 });
      stream.end(`${headers[":method"]}`);
    }));
    const target = `a.example:${origin.port}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    expect(await curl(rig, `https://${target}/`)).toBe("GET 2 200");
    expect(await curl(rig, "--data", "body", `https://${target}/`)).toBe("POST 2 200");
    await origin[Symbol.asyncDispose]();
    await using other = await open();
    expect(await curl(other.rig, "--http1.1", `https://${other.target}/`)).toBe(`GET ${other.target} 1.1 200`);
    // The server of this one speaks HTTP/1.1 only.
    expect(await curl(other.rig, `https://${other.target}/`)).toBe(`GET ${other.target} 2 200`);
  });

  test("curl is told by both why it is refused", async () => {
    await using opened = await open({ methods: "limited" });
    expect(await curl(opened.rig, "--data", "body", `https://${opened.target}/`)).toMatch(/"reason":"method_not_allowed".* 2 403$/s);
    expect(await curl(opened.rig, "--http1.1", "--data", "body", `https://${opened.target}/`)).toMatch(/"reason":"method_not_allowed".* 1.1 403$/s);
    expect(await curl(opened.rig, "-H", "Host: b.example", `https://${opened.target}/`)).toMatch(/"reason":"host_mismatch".* 2 403$/s);
  });

  test("Node's fetch goes through with the variables that children get", async () => {
    await using opened = await open();
    const program = `const answer = await fetch("https://${opened.target}/"); console.log(answer.status, await answer.text());`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { env: { PATH: process.env["PATH"], HTTPS_PROXY: `http://127.0.0.1:${opened.rig.port}`, NODE_USE_ENV_PROXY: "1", NODE_EXTRA_CA_CERTS: path.join(dir, "bundle.pem") } });
    expect(stdout).toBe(`200 GET ${opened.target}\n`);
  });

  test("Python goes through with the variables that children get", async () => {
    await using opened = await open();
    const program = `import urllib.request; print(urllib.request.urlopen("https://${opened.target}/").read().decode())`;
    const { stdout } = await run("python3", ["-c", program], { env: { PATH: process.env["PATH"], https_proxy: `http://127.0.0.1:${opened.rig.port}`, SSL_CERT_FILE: path.join(dir, "bundle.pem") } });
    expect(stdout).toBe(`GET ${opened.target}\n`);
  });
});
