import { setTimeout as sleep } from "node:timers/promises";
import { serveHttp, serveInside } from "../../../../proxy/http/http-listener.ts";
import type { HttpInside } from "../../../../proxy/web-context.ts";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import { type Origin, type OriginManner, startOrigin } from "../tunnel/origin.ts";
import { RawClient } from "../tunnel/raw-client.ts";
import { type Rig, type RigOptions, startRig } from "../web-rig.ts";

/** The name that these tests ask for. */
export const HOST = "a.example.com";
/** It is allowed as well, and leads to the same server. */
export const OTHER = "b.example.com";

export type HttpOptions = Partial<Omit<RigOptions, "parts" | "serve">> & {
  /** What is served in place of the explicit proxy. */
  inside?: (port: number) => HttpInside;
};

/** A proxy for plain requests, a server behind it, and a client. */
export class HttpPath implements AsyncDisposable {
  readonly origin: Origin;
  readonly rig: Rig;
  readonly client: RawClient;

  constructor(origin: Origin, rig: Rig, client: RawClient) {
    this.origin = origin;
    this.rig = rig;
    this.client = client;
  }

  /** `host:port` of the server under its allowed name. */
  get authority(): string {
    return `${HOST}:${this.origin.port}`;
  }

  /** A request that names it in full. */
  request(line = "GET /", fields = "", body = ""): string {
    const [method, path] = line.split(" ");
    return `${method} http://${this.authority}${path} HTTP/1.1\r\nHost: ${this.authority}\r\n${fields}\r\n${body}`;
  }

  /** What the server heard, as text. */
  get heard(): string {
    return Buffer.concat(this.origin.heard).toString("latin1");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.rig[Symbol.asyncDispose]();
    await this.origin[Symbol.asyncDispose]();
  }
}

export async function openHttp(manner: OriginManner = answering(), { inside, ...options }: HttpOptions = {}): Promise<HttpPath> {
  const origin = await startOrigin(manner);
  const allow = [`${HOST}:${origin.port}`, `${OTHER}:${origin.port}`, ...(options.allow ?? [])];
  const rig = await startRig({
    hosts: { [HOST]: ["127.0.0.1"], [OTHER]: ["127.0.0.1"] },
    ...options,
    allow,
    parts: {},
    serve: (connection, context) => (inside === undefined ? serveHttp(connection, context) : serveInside(context)(connection, Buffer.alloc(0), inside(origin.port))),
  });
  return new HttpPath(origin, rig, await RawClient.open(rig.port));
}

export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Answers every head, however it is split, and reads no bodies. */
export function answering(response: string | ((head: string) => string) = OK): OriginManner {
  return (socket) => {
    let rest = "";
    socket.on("data", (bytes: Buffer) => {
      rest += bytes.toString("latin1");
      for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
        const head = rest.slice(0, end + 4);
        rest = rest.slice(end + 4);
        socket.write(typeof response === "string" ? response : response(head), "latin1");
      }
    });
    socket.on("end", () => socket.end());
  };
}

/** An answer of the server or the proxy, with a body of the length that it tells. */
export async function takeAnswer(client: RawClient): Promise<{ status: number; head: string; body: string }> {
  const head = await client.takeHead();
  const length = Number(/\r\ncontent-length: (?<length>[0-9]+)\r\n/i.exec(head)?.groups?.["length"] ?? 0);
  return { status: Number(/^HTTP\/1\.1 (?<status>[0-9]{3})/.exec(head)?.groups?.["status"]), head, body: (await client.take(length)).toString("latin1") };
}

/** What the log says of decisions, as short as a row. */
export function listDecisions(records: readonly DecisionRecord[]): string[] {
  return records.flatMap((record) => (record.kind === "decision" ? [`${record.action} ${record.reason} ${record.method ?? "-"} ${record.host}`] : []));
}

/** A figure once it does not change any more. */
export async function settle(read: () => number): Promise<number> {
  let last = Number.NaN;
  for (let same = 0; same < 5; await sleep(100)) {
    const now = read();
    same = now === last ? same + 1 : 0;
    last = now;
  }
  return last;
}
