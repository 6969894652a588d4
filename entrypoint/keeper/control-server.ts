import type { Server, Socket } from "node:net";
import { type ControlReply, type ControlRequest, controlRequestSchema, type KeeperStatus } from "../../policy/keeper-message.ts";
import { readJsonLines } from "./json-lines.ts";
import { listenOn } from "./listen.ts";

export type ControlInput = { path: string; perform: (request: ControlRequest) => Promise<ControlReply>; status: () => KeeperStatus };

/** A policy of 100,000 entries, each with its place. */
const MAX_LINE = 64 * 1024 * 1024;

/** Answers the command line and the entrypoint: one request and one reply a connection. The proxy cannot reach this socket. */
export function listenForControl({ path, perform, status }: ControlInput): Promise<Server> {
  return listenOn(path, 0o600, (socket: Socket) => {
    socket.on("error", () => undefined);
    readJsonLines(socket, MAX_LINE, (given) => {
      void answer(given).then((reply) => socket.end(`${JSON.stringify(reply)}\n`));
    });
  });

  async function answer(given: unknown): Promise<ControlReply> {
    const request = controlRequestSchema.safeParse(given);
    if (request.success) {
      return perform(request.data).catch((error: unknown) => refuse([{ what: `the keeper failed: ${error instanceof Error ? error.message : String(error)}` }], status()));
    }
    const complaints = request.error.issues.map(({ path: at, message }) => ({
      what: `${at.join(".")}: ${message}`,
      expected: "a request that this box's keeper knows",
      fix: "the box was started by another version of agentbox; start it again",
    }));
    return refuse(complaints, status());
  }
}

/** The reply that says why nothing was changed. */
export function refuse(complaints: Extract<ControlReply, { ok: false }>["complaints"], status: KeeperStatus): ControlReply {
  return { ok: false, complaints, status };
}
