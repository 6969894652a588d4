import type { IncomingMessage, ServerResponse } from "node:http";
import type { Arrival } from "./tcp-server.ts";

/** A request with what the lab knows about how it came in. */
export type Visit = {
  request: IncomingMessage;
  response: ServerResponse;
  arrival: Arrival;
  secure: boolean;
  /** The Host header without its port, lower case. */
  host: string;
  sni: string;
  url: URL;
};

/** One web site of the lab; false means that the path is not one of its own. */
export type Site = (visit: Visit) => boolean | Promise<boolean>;

/** Sends a complete answer; strings are UTF-8. */
export function send({ request, response }: Visit, type: string, body: string | Buffer, status = 200): true {
  const bytes = Buffer.from(body);
  response.writeHead(status, { "content-type": type, "content-length": bytes.length });
  response.end(request.method === "HEAD" ? undefined : bytes);
  return true;
}

/** Sends a value as JSON. */
export function sendJson(visit: Visit, value: unknown, status = 200): true {
  return send(visit, "application/json", `${JSON.stringify(value)}\n`, status);
}
