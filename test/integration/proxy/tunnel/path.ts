import type { Socket } from "node:net";
import type { DecisionRecord } from "../../../../policy/decision-record.ts";
import type { Rig } from "../web-rig.ts";
import { echo, type Origin, type OriginManner, startOrigin } from "./origin.ts";
import { askPassage, startPassages, type Way } from "./passages.ts";
import { RawClient } from "./raw-client.ts";

/** The name that passages of these tests lead to. */
export const HOST = "a.example.com";

/** A proxy, a server behind it and a client whose passage to it is open. */
export class Path implements AsyncDisposable {
  readonly origin: Origin;
  readonly rig: Rig;
  readonly client: RawClient;

  constructor(origin: Origin, rig: Rig, client: RawClient) {
    this.origin = origin;
    this.rig = rig;
    this.client = client;
  }

  get server(): Socket {
    const [socket] = this.origin.sockets;
    if (socket === undefined) throw new Error("nobody connected");
    return socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.rig[Symbol.asyncDispose]();
    await this.origin[Symbol.asyncDispose]();
  }
}

/** Opens a passage to a server; redirected TLS begins with the client's first bytes. */
export async function openPath(way: Way, manner: OriginManner = echo, options: Partial<Parameters<typeof startPassages>[1]> = {}): Promise<Path> {
  const origin = await startOrigin(manner);
  const rig = await startPassages(way, { port: origin.port, allow: [`${HOST}:${origin.port}`], hosts: { [HOST]: ["127.0.0.1"] }, ...options });
  const client = await RawClient.open(rig.port);
  const answer = await askPassage(client, way, `${HOST}:${origin.port}`);
  if (!answer.granted) throw new Error(`refused with ${answer.code}`);
  return new Path(origin, rig, client);
}

/** Says nothing of its own. */
export const silent: OriginManner = () => undefined;

/** The first record of a kind that the log holds, once it does. */
export async function waitFor<K extends DecisionRecord["kind"]>(rig: Rig, kind: K): Promise<Extract<DecisionRecord, { kind: K }>> {
  for (;;) {
    const found = rig.readLog().find((record): record is Extract<DecisionRecord, { kind: K }> => record.kind === kind);
    if (found !== undefined) return found;
    await new Promise((resolve) => void setTimeout(resolve, 50));
  }
}
