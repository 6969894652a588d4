import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { rmSync } from "node:fs";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { KnownError } from "../../policy/errors.ts";
import type { ProxySettings } from "../../policy/proxy-config.ts";
import { judgeRequest, type Refused } from "./admin-guard.ts";
import { type AdminSubject, findRoute } from "./admin-routes.ts";
import { streamEvents } from "./event-stream.ts";

export type AdminParts = { where: ProxySettings["admin"]; token: string; subject: AdminSubject; /** Is told of what should not happen. */ onBug: (error: unknown) => void };

const MAX_BODY_BYTES = 8 * 1024;
const REQUEST_LIMIT_MS = 10_000;
const MAX_CONNECTIONS = 64;

/** Serves the admin API; rejects with the system's error where nothing can listen there. Returns how to end it. */
export async function serveAdmin({ where, token, subject, onBug }: AdminParts): Promise<() => void> {
  const server = createServer({ headersTimeout: REQUEST_LIMIT_MS, requestTimeout: REQUEST_LIMIT_MS, keepAliveTimeout: 5000, maxHeaderSize: 16 * 1024, requireHostHeader: false });
  server.maxConnections = MAX_CONNECTIONS;
  const guard = { where, token };
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    // A client that goes away takes nothing with it.
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const refused = judgeRequest(request, guard);
    if (refused !== undefined) return refuse(response, refused);
    if (request.headers.expect !== undefined) response.writeContinue();
    answer(request, response, subject).catch((error: unknown) => {
      if (!(error instanceof KnownError)) onBug(error);
      refuse(response, error instanceof KnownError ? { status: 422, error: error.message } : { status: 500, error: "this is a bug; the proxy has written its stack to stderr" });
    });
  };
  server.on("request", take);
  // Without this Node would ask for the body of a request that nobody judged yet.
  server.on("checkContinue", take);
  server.on("clientError", refuseMalformed);
  if ("path" in where) await removeStale(where.path);
  await listen(server, where);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, subject: AdminSubject): Promise<void> {
  const url = URL.parse(request.url ?? "", "http://localhost");
  const found = url === null ? undefined : findRoute(url.pathname);
  if (url === null || found === undefined) return refuse(response, { status: 404, error: "there is no such path: /health, /config, /patterns, /blocked, /mode, /reload, /events" });
  if (request.method !== found.method) return refuse(response, { status: 405, error: `${found.method} alone is answered here`, headers: { Allow: found.method } });
  const body = await readBody(request);
  if (body === undefined) return refuse(response, { status: 413, error: `a body of more than ${MAX_BODY_BYTES} bytes` });
  if (found.stream) return streamEvents(response, subject);
  const result = await found.answer({ query: url.searchParams, body, subject });
  if ("error" in result) return refuse(response, result);
  send(response, { status: 200, type: result.text === undefined ? "application/json" : "text/plain; charset=utf-8", body: result.text ?? result.json });
}

/** The body as text; undefined for one that is too long, of which nothing is kept. */
function readBody(request: IncomingMessage): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const chunks: Buffer[] = [];
  let length = 0;
  request.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    else resolve(undefined);
  });
  request.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
  request.on("close", () => resolve(undefined));
  return promise;
}

function refuse(response: ServerResponse, { status, error, headers = {} }: Refused): void {
  send(response, { status, type: "application/json", body: JSON.stringify({ error }), headers });
}

function refuseMalformed(_error: Error, socket: Duplex): void {
  const body = JSON.stringify({ error: "this is no request" });
  if (socket.writable) socket.end(`HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
  else socket.destroy();
}

function send(response: ServerResponse, { status, type, body, headers = {} }: { status: number; type: string; body: string; headers?: Readonly<Record<string, string>> }): void {
  if (response.headersSent) return void response.destroy();
  const whole = `${body}\n`;
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(whole), "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", ...headers });
  response.end(whole);
}

/** A socket that a killed proxy left behind answers nobody; one that answers is another's. */
async function removeStale(path: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect(path);
  probe.once("connect", () => resolve(false));
  probe.once("error", (error) => resolve("code" in error && error.code === "ECONNREFUSED"));
  const stale = await promise;
  probe.destroy();
  if (stale) rmSync(path, { force: true });
}

async function listen(server: Server, where: ProxySettings["admin"]): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  server.once("error", reject);
  const done = (): void => resolve(undefined);
  if ("path" in where) {
    // The socket is there from this call on, so it must be its owner's alone from the beginning.
    const mask = process.umask(0o177);
    server.listen({ path: where.path }, done);
    process.umask(mask);
  } else {
    server.listen({ host: where.address, port: where.port, exclusive: true }, done);
  }
  await promise;
  server.off("error", reject);
  // Out of descriptors: the connection waits in the kernel until there is one again.
  server.on("error", () => undefined);
}
