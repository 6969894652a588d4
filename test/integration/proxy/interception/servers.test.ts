import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer as createTcp, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { beforeAll, describe, expect, test } from "vitest";
import { type Host, parseHost } from "../../../../policy/host-name.ts";
import { type Authority, makeAuthority } from "../../../../proxy/interception/authority.ts";
import { openIssuer } from "../../../../proxy/interception/issuer.ts";
import type { Rig } from "../web-rig.ts";
import { ask } from "./http2-client.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startInterception } from "./interception-rig.ts";

const DAY_MS = 86_400_000;

let authorities: Authorities;
let foreign: Authority;
beforeAll(async () => {
  authorities = await makeAuthorities();
  foreign = await makeAuthority();
});

const hostOf = (name: string): Host => {
  const parsed = parseHost(name);
  if (!parsed.ok) throw new Error(parsed.complaint.what);
  return parsed.value;
};

type Server = AsyncDisposable & { port: number; /** What clients said after the handshake. */ heard: () => string; connections: () => number };

async function serve(context: SecureContext): Promise<Server> {
  const sockets = new Set<Socket>();
  let heard = "";
  let connections = 0;
  const server = createTcp((raw) => {
    connections += 1;
    sockets.add(raw.on("error", () => undefined));
    const socket = new TLSSocket(raw, { isServer: true, secureContext: context, ALPNProtocols: ["http/1.1"] });
    socket.on("_tlsError", () => socket.destroy());
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      heard += bytes.toString();
      if (heard.endsWith("\r\n\r\n")) socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { port: portOf(server.address()), heard: () => heard, connections: () => connections, [Symbol.asyncDispose]: async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => void server.close(resolve));
  } };
}

function portOf(where: unknown): number {
  if (typeof where === "object" && where !== null && "port" in where && typeof where.port === "number") return where.port;
  throw new Error("no port");
}

/** Key and certificate in one text, which openssl makes. */
function makeSelfSigned(): { cert: string; key: string } {
  const { stdout, status } = spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "-", "-out", "-", "-days", "2", "-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-addext", "basicConstraints=critical,CA:FALSE"]);
  if (status !== 0) throw new Error("openssl");
  return { cert: stdout.toString(), key: stdout.toString() };
}

/** Asks by both protocols and gives what the client sees. */
async function askBoth(rig: Rig, target: string): Promise<{ status: number; body: string }[]> {
  const tls = await openTls(rig, target, authorities);
  tls.write(`GET /secret HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);
  const answer = await text(tls);
  await using session = await openHttp2(rig, target, authorities);
  const { status, body } = await ask(session, { ":path": "/secret" });
  return [{ status: Number(answer.split(" ")[1]), body: answer.slice(answer.indexOf("\r\n\r\n") + 4) }, { status: status ?? 0, body }];
}

/** A context of the site's authority. */
const issue = async ({ host = "a.example", from = -DAY_MS, until = DAY_MS, authority = authorities.site }: { host?: string; from?: number; until?: number; authority?: Authority | Authorities["site"] }): Promise<SecureContext> => {
  const pair = "certPem" in authority ? authority : { certPem: authority.certificate, keyPem: authority.key };
  return await (await openIssuer(pair)).issue(hostOf(host), { from: Date.now() + from, until: Date.now() + until });
};

type Row = { what: string; context: () => Promise<SecureContext>; why: string };

describe("a server's certificate", () => {
  const rows: readonly Row[] = [
    { what: "that has run out", context: () => issue({ from: -2 * DAY_MS, until: -DAY_MS }), why: "the certificate of its server has run out (CERT_HAS_EXPIRED)" },
    { what: "that is not valid yet", context: () => issue({ from: DAY_MS, until: 2 * DAY_MS }), why: "the certificate of its server is not valid yet (CERT_NOT_YET_VALID)" },
    { what: "for another host", context: () => issue({ host: "b.example" }), why: "the certificate of its server is for other names (ERR_TLS_CERT_ALTNAME_INVALID)" },
    { what: "of an authority that nobody knows", context: () => issue({ authority: foreign }), why: "the certificate of its server is vouched for by an authority that is not trusted (SELF_SIGNED_CERT_IN_CHAIN)" },
    { what: "that vouches for itself", context: () => Promise.resolve(createSecureContext(makeSelfSigned())), why: "the certificate of its server is vouched for by nobody but itself (DEPTH_ZERO_SELF_SIGNED_CERT)" },
    { what: "that is an authority's own", context: () => Promise.resolve(createSecureContext({ cert: foreign.certPem, key: foreign.keyPem })), why: "the certificate of its server is not one for servers (INVALID_PURPOSE)" },
    // Whoever steals the box's authority cannot use it on the other side of the proxy.
    { what: "of the proxy's own authority", context: () => issue({ authority: authorities.own }), why: "the certificate of its server is vouched for by an authority that is not trusted (SELF_SIGNED_CERT_IN_CHAIN)" },
    { what: "shown with a version of TLS that is too old", context: () => Promise.resolve(createSecureContext({ ...makeSelfSigned(), minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" })), why: "the TLS handshake with its server fails (ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION)" },
  ];

  test.each(rows)("$what is a 502 that says so, and the server hears nothing of the request", async ({ context, why }) => {
    await using server = await serve(await context());
    const target = `a.example:${server.port}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    const sentence = { status: 502, body: `AgentBox let ${target} through, but ${why}\n` };
    expect(await askBoth(rig, target)).toEqual([sentence, sentence]);
    expect(server.heard()).toBe("");
  });

  test("that is right lets both requests through", async () => {
    await using server = await serve(await issue({}));
    const target = `a.example:${server.port}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    expect(await askBoth(rig, target)).toEqual([{ status: 200, body: "ok" }, { status: 200, body: "ok" }]);
    expect(server.heard()).toContain("GET /secret");
  });

  test("may be for an address, where the host is one", async () => {
    await using server = await serve(await issue({ host: "127.0.0.1" }));
    const target = `127.0.0.1:${server.port}`;
    await using rig = await startInterception(authorities, { allow: [target] });
    const tls = await openTls(rig, target, authorities);
    expect(tls.getPeerX509Certificate()?.subjectAltName).toBe("IP Address:127.0.0.1");
    tls.write(`GET / HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);
    expect(await text(tls)).toMatch(/^HTTP\/1.1 200 /);
  });

  test("is checked whatever the environment says", async () => {
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      await using server = await serve(await issue({ authority: foreign }));
      const target = `a.example:${server.port}`;
      await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
      expect((await askBoth(rig, target)).map(({ status }) => status)).toEqual([502, 502]);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
  });
});

describe("a server that speaks no TLS", () => {
  test.each([
    { what: "answers in HTTP", onHello: (socket: Socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), status: 502, why: /the TLS handshake with its server fails \(ERR_SSL_/ },
    { what: "hangs up", onHello: (socket: Socket) => void socket.end(), status: 502, why: /its server ends the connection during the TLS handshake|the TLS handshake with its server fails \(ECONNRESET\)/ },
    { what: "says nothing", onHello: () => undefined, status: 504, why: /its server does not finish the TLS handshake/ },
  ])("and $what is a $status", async ({ onHello, status, why }) => {
    const sockets = new Set<Socket>();
    const server = createTcp((socket) => {
      sockets.add(socket.on("error", () => undefined));
      socket.once("data", () => onHello(socket));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const target = `a.example:${portOf(server.address())}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    await using session = await openHttp2(rig, target, authorities);
    const told = await ask(session, { ":path": "/" });
    expect(told).toMatchObject({ status, body: expect.stringMatching(why) });
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});

describe("the connection that a tunnel was granted with", () => {
  test("serves the first request", async () => {
    await using server = await serve(await issue({}));
    const target = `a.example:${server.port}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    const tls = await openTls(rig, target, authorities);
    tls.write(`GET /1 HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);
    expect(await text(tls)).toMatch(/^HTTP\/1.1 200 /);
    expect(server.connections()).toBe(1);
  });

  test("is not missed where its server closed it before it was used", async () => {
    let count = 0;
    const first = Promise.withResolvers<Socket>();
    await using secure = await serve(await issue({}));
    const front = createTcp((socket) => {
      count += 1;
      if (count === 1) first.resolve(socket);
      else socket.on("error", () => undefined).pipe(connect(secure.port, "127.0.0.1")).on("error", () => undefined).pipe(socket);
    });
    await once(front.listen(0, "127.0.0.1"), "listening");
    const target = `a.example:${portOf(front.address())}`;
    await using rig = await startInterception(authorities, { allow: [target], hosts: { "a.example": ["127.0.0.1"] } });
    const tls = await openTls(rig, target, authorities);
    const unused = await first.promise;
    unused.destroy();
    await once(unused, "close");
    tls.write(`GET / HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);
    expect(await text(tls)).toMatch(/^HTTP\/1.1 200 /);
    expect(count).toBe(2);
    front.close();
  });
});
