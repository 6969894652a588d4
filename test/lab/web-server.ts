import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { callbackify } from "node:util";
import type { Answerer } from "./dns-answer.ts";
import { answerDnsRequest } from "./dns-server.ts";
import type { Issuer } from "./certificates.ts";
import { send, sendJson, type Site, type Visit } from "./http-site.ts";
import type { Recorder } from "./recorder.ts";
import type { Arrival } from "./tcp-server.ts";

export type WebServer = { accept: (socket: Socket, arrival: Arrival) => void };

/** One HTTP engine for all web sites; sockets are handed in, plain or with TLS taken off. */
export function createWebServer(options: { sites: readonly Site[]; recorder: Recorder; answerer: Answerer }): WebServer {
  const { sites, recorder, answerer } = options;
  const arrivals = new WeakMap<Socket, Arrival>();
  const all = [createDnsSite(answerer, recorder), ...sites, createProbeSite()];
  const server: Server = createServer({ keepAliveTimeout: 30_000 }, (request, response) => {
    const visit = readVisit({ request, response, arrival: arrivals.get(request.socket) ?? { address: "", port: 0, client: "" } });
    const { arrival, secure, host, sni, url } = visit;
    recorder.request({ kind: secure ? "https" : "http", ...arrival, host, sni, method: request.method ?? "", path: `${url.pathname}${url.search}` });
    serveVisit(all, visit).catch((error: unknown) => {
      process.stderr.write(`lab: ${request.method ?? ""} ${url.href}: ${String(error)}\n`);
      response.destroy();
    });
  });
  return {
    accept: (socket, arrival) => {
      arrivals.set(socket, arrival);
      server.emit("connection", socket);
    },
  };
}

/** Takes TLS off a socket, with a certificate for the SNI or, without one, for the address dialled. */
export async function unwrapTls(socket: Socket, arrival: Arrival, issuer: Issuer): Promise<TLSSocket> {
  const secured = new TLSSocket(socket, {
    isServer: true,
    secureContext: await issuer.contextFor(arrival.address),
    SNICallback: (name, done) => callbackify(issuer.contextFor)(name.toLowerCase(), done),
    ALPNProtocols: ["http/1.1"],
  });
  secured.on("error", () => socket.destroy());
  return secured;
}

function readVisit({ request, response, arrival }: Pick<Visit, "request" | "response" | "arrival">): Visit {
  const { socket } = request;
  const secure = socket instanceof TLSSocket;
  const sni = secure && typeof socket.servername === "string" ? socket.servername : "";
  const host = (request.headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
  const url = URL.parse(request.url ?? "/", "http://lab") ?? new URL("http://lab/");
  return { request, response, arrival, secure, host, sni, url };
}

async function serveVisit(sites: readonly Site[], visit: Visit): Promise<void> {
  for (const site of sites) {
    if (await site(visit)) return;
  }
}

/** DNS over HTTPS on every host (RFC 8484), so that its refusal is never for want of a server. */
function createDnsSite(answerer: Answerer, recorder: Recorder): Site {
  return async (visit) => {
    if (visit.url.pathname !== "/dns-query") return false;
    const message = visit.request.method === "POST" ? await readBody(visit.request) : Buffer.from(visit.url.searchParams.get("dns") ?? "", "base64url");
    const peer = { server: visit.arrival.address, client: visit.arrival.client };
    const answer = await answerDnsRequest(message, peer, { answerer, recorder });
    return answer === undefined || send(visit, "application/dns-message", answer);
  };
}

/** What every other host answers: who was reached, as JSON; or `/bytes/N`, `/status/N`, `/latest/meta-data/`. */
function createProbeSite(): Site {
  return (visit) => {
    const { arrival, host, sni, request, url } = visit;
    const [, kind, number] = /^\/(bytes|status)\/(\d{1,9})$/.exec(url.pathname) ?? [];
    if (kind === "bytes") return send(visit, "application/octet-stream", Buffer.alloc(Number(number), "lab "));
    if (url.pathname.startsWith("/latest/meta-data") && visit.arrival.address === "169.254.169.254") return send(visit, "text/plain", "lab-metadata-secret\n");
    const status = kind === "status" && Number(number) >= 200 && Number(number) <= 599 ? Number(number) : 200;
    const seen = { lab: true, server: arrival.address, port: arrival.port, sni, host, method: request.method, path: url.pathname };
    return sendJson(visit, seen, status);
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
