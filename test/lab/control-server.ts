import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import { dnsBehavioursSchema, hostBehavioursSchema, type LabState } from "./control-schema.ts";
import type { Answerer } from "./dns-answer.ts";
import type { Recorder } from "./recorder.ts";
import type { HostTable } from "./tcp-server.ts";

type Controlled = { recorder: Recorder; answerer: Answerer; hosts: HostTable; state: LabState };
type Route = (body: unknown) => unknown;

/**
 * The lab's own door, on a unix socket: such a socket crosses network namespaces and no box can reach it.
 * GET /state, /questions, /connections, /requests; POST /dns, /hosts, /reset. Bodies are JSON.
 */
export async function serveControl(path: string, controlled: Controlled): Promise<Server> {
  const routes = createRoutes(controlled);
  const server = createServer((request, response) => {
    answer(routes, request, response).catch((error: unknown) => {
      reply(response, error instanceof z.ZodError || error instanceof SyntaxError ? 400 : 500, { error: String(error) });
    });
  });
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  // The lab of a container runs as root, its user may not; the directory around the socket is the user's own.
  await chmod(path, 0o666);
  return server;
}

function createRoutes({ recorder, answerer, hosts, state }: Controlled): Map<string, Route> {
  return new Map<string, Route>([
    ["GET /state", () => state],
    ["GET /questions", () => recorder.questions],
    ["GET /connections", () => recorder.connections],
    ["GET /requests", () => recorder.requests],
    ["POST /dns", (body) => answerer.change(dnsBehavioursSchema.parse(body))],
    ["POST /hosts", (body) => hosts.change(hostBehavioursSchema.parse(body))],
    [
      "POST /reset",
      () => {
        recorder.clear();
        answerer.reset();
        hosts.reset();
      },
    ],
  ]);
}

async function answer(routes: Map<string, Route>, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const route = routes.get(`${request.method ?? ""} ${request.url ?? ""}`);
  if (route === undefined) return reply(response, 404, { error: `no such route; there are ${[...routes.keys()].join(", ")}` });
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  reply(response, 200, route(text === "" ? undefined : JSON.parse(text)) ?? {});
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(value)}\n`);
}
