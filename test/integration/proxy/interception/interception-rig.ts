import { once } from "node:events";
import { connect as connectHttp2, type ClientHttp2Session, createSecureServer, type Http2SecureServer, type SecureServerOptions } from "node:http2";
import { connect as connectTcp, isIP, type Server as TcpServer, type Socket } from "node:net";
import { createServer as createHttps, type Server as HttpsServer } from "node:https";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import type { WebContext } from "../../../../proxy/web-context.ts";
import { serveHttp, serveInside } from "../../../../proxy/http/http-listener.ts";
import { type Authority, makeAuthority } from "../../../../proxy/interception/authority.ts";
import { makeInterceptor } from "../../../../proxy/interception/interceptor.ts";
import { openTunnel } from "../../../../proxy/tunnel/tunnel.ts";
import { type AuthorityPem, createAuthority, createIssuer, type Issuer } from "../../../lab/certificates.ts";
import { type Rig, type RigOptions, startRig } from "../web-rig.ts";

/** The site whose authority vouches for the servers, and the proxy's own. */
export type Authorities = { site: AuthorityPem; issuer: Issuer; own: Authority };

export async function makeAuthorities(): Promise<Authorities> {
  const site = await createAuthority();
  return { site, issuer: await createIssuer(site), own: await makeAuthority() };
}

/** A proxy that intercepts, with all of its real parts; asked by CONNECT. */
export async function startInterception({ site, own }: Authorities, options: Omit<RigOptions, "parts" | "serve"> & Partial<Pick<RigOptions, "serve">>): Promise<Rig> {
  const intercept = makeInterceptor({ authority: own, ca: site.certificate });
  return await startRig({
    serve: serveHttp,
    ...options,
    settings: { intercept: true, ...options.settings },
    parts: (context: WebContext) => ({ openTunnel: openTunnel(context), serveInside: serveInside(context), intercept: intercept(context) }),
  });
}

/** A server with one certificate for all names, closed at the end with all its connections. */
export type Origin<T> = AsyncDisposable & { server: T; port: number; connections: () => number };

export async function startHttps(context: SecureContext, onServer: (server: HttpsServer) => void): Promise<Origin<HttpsServer>> {
  const server = createHttps({ SNICallback: (_name, done) => done(null, context), ALPNProtocols: ["http/1.1"] });
  onServer(server);
  return await listen(server);
}

export async function startHttp2(context: SecureContext, onServer: (server: Http2SecureServer) => void, options: SecureServerOptions = {}): Promise<Origin<Http2SecureServer>> {
  const server = createSecureServer({ SNICallback: (_name, done) => done(null, context), ...options });
  server.on("sessionError", () => undefined);
  onServer(server);
  return await listen(server);
}

async function listen<T extends TcpServer>(server: T): Promise<Origin<T>> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on("connection", (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", () => undefined);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const where = server.address();
  if (where === null || typeof where === "string") throw new Error("no port");
  return {
    server,
    port: where.port,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

/** Asks the proxy for a tunnel; the socket is the tunnel afterwards, or the answer is thrown. */
export async function askTunnel(rig: Rig, target: string): Promise<Socket> {
  const socket = connectTcp(rig.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const answer = await new Promise<string>((resolve) => {
    let text = "";
    const take = (bytes: Buffer): void => {
      text += bytes.toString();
      if (text.includes("\r\n\r\n")) resolve(text);
    };
    socket.on("data", take);
    socket.once("close", () => resolve(text));
  });
  socket.removeAllListeners("data");
  socket.pause();
  if (!answer.startsWith("HTTP/1.1 200")) throw new Error(answer);
  return socket;
}

/** Opens TLS through the proxy, trusting its authority. */
export async function openTls(rig: Rig, target: string, { own }: Authorities, protocols: string[] = ["http/1.1"]): Promise<TLSSocket> {
  const socket = await askTunnel(rig, target);
  const host = target.slice(0, target.lastIndexOf(":"));
  const tls = connectTls({ socket, ca: own.certPem, host, ...(isIP(host) === 0 ? { servername: host } : {}), ALPNProtocols: protocols });
  tls.on("error", () => undefined);
  await once(tls, "secureConnect");
  return tls;
}

/** Opens HTTP/2 through the proxy. */
export async function openHttp2(rig: Rig, target: string, authorities: Authorities): Promise<ClientHttp2Session & AsyncDisposable> {
  const tls = await openTls(rig, target, authorities, ["h2", "http/1.1"]);
  if (tls.alpnProtocol !== "h2") throw new Error(`the proxy chose ${tls.alpnProtocol}`);
  const session = connectHttp2(`https://${target}`, { createConnection: () => tls });
  session.on("error", () => undefined);
  return Object.assign(session, { [Symbol.asyncDispose]: () => Promise.resolve(session.destroy()) });
}
