import { once } from "node:events";
import { connect, createServer as createTcp, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { createServer as createTls } from "node:tls";
import { beforeAll, describe, expect, test } from "vitest";
import { parseAddress } from "../../../../policy/address.ts";
import { Dialler } from "../../../../proxy/access/dial.ts";
import { ask } from "./http2-client.ts";
import { type Authorities, makeAuthorities, openHttp2, openTls, startHttp2, startInterception } from "./interception-rig.ts";

let authorities: Authorities;
beforeAll(async () => {
  authorities = await makeAuthorities();
});

/** A site's proxy that leads every tunnel to this port of loopback, and tells what it was asked for. */
async function startSiteProxy(tls: boolean, port: number) {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const onSocket = (client: Socket): void => {
    sockets.add(client.on("error", () => undefined));
    client.once("data", (bytes: Buffer) => {
      asked.push(bytes.toString().split("\r\n")[0] ?? "");
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      const server = connect(port, "127.0.0.1").on("error", () => undefined);
      sockets.add(server);
      client.pipe(server).pipe(client);
    });
  };
  const context = await authorities.issuer.contextFor("site.example");
  const server: Server = tls ? createTls({ SNICallback: (_name, done) => done(null, context) }, onSocket) : createTcp(onSocket);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const where = server.address();
  if (where === null || typeof where === "string") throw new Error("no port");
  const dispose = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => void server.close(resolve));
  };
  return { asked, port: where.port, [Symbol.asyncDispose]: dispose };
}

describe.each([{ kind: "plain", tls: false }, { kind: "TLS", tls: true }])("behind a site's proxy that speaks $kind", ({ tls }) => {
  test("what is opened leaves through its tunnels, verified end to end, by HTTP/1.1 and HTTP/2", async () => {
    await using origin = await startHttp2(await authorities.issuer.contextFor("a.example"), (server) => void server.on("request", (request, response) => response.end(`${request.httpVersion} ${request.url}`)), { allowHTTP1: true });
    await using site = await startSiteProxy(tls, origin.port);
    const settings = { upstream: { host: { kind: "name" as const, name: "site.example" }, port: site.port, tls, user: "", password: "" } };
    await using rig = await startInterception(authorities, { allow: ["a.example", "wrong.example"], settings });
    const loopback = parseAddress("127.0.0.1");
    if (!loopback.ok) throw new Error("no address");
    rig.context.dialler = new Dialler({ lookup: () => ({ ok: true, addresses: [loopback.value], freshUntil: Number.POSITIVE_INFINITY }), ca: authorities.site.certificate });
    for (const path of ["/1", "/2"]) {
      const socket = await openTls(rig, "a.example:443", authorities);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`);
      expect(await text(socket)).toContain(`1.1 ${path}`);
    }
    await using session = await openHttp2(rig, "a.example:443", authorities);
    expect((await Promise.all(["/3", "/4"].map((path) => ask(session, { ":path": path })))).map(({ body }) => body)).toEqual(["2.0 /3", "2.0 /4"]);
    expect(new Set(site.asked)).toEqual(new Set(["CONNECT a.example:443 HTTP/1.1"]));
    // The site's proxy leads to the wrong server: it cannot pretend to be another.
    await using other = await openHttp2(rig, "wrong.example:443", authorities);
    expect(await ask(other, { ":path": "/" })).toMatchObject({ status: 502, body: expect.stringContaining("is for other names") });
  });
});
