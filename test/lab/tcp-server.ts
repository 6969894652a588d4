import { createServer, type Server, type Socket } from "node:net";
import type { HostBehaviours } from "./control-schema.ts";
import { plainAddress, type Recorder } from "./recorder.ts";

/** Where a TCP connection came in, in the form the recordings use. */
export type Arrival = { address: string; port: number; client: string };

/** Serves one connection. */
export type Accept = (socket: Socket, arrival: Arrival) => void | Promise<void>;

/** What tests asked addresses to do; consulted when a connection is accepted. */
export type HostTable = { find(address: string): "reset" | "silent" | undefined; change(changes: HostBehaviours): void; reset(): void };

/** Creates the table with what the zone's special addresses always do. */
export function createHostTable(fixed: Readonly<Record<string, "reset" | "silent">>): HostTable {
  const asked = new Map<string, "reset" | "silent">();
  return {
    find: (address) => asked.get(address) ?? fixed[address] ?? asked.get("*"),
    change: (changes) => {
      for (const [address, behaviour] of Object.entries(changes)) {
        if (behaviour === null) asked.delete(address);
        else asked.set(address, behaviour.tcp);
      }
    },
    reset: () => asked.clear(),
  };
}

/**
 * Listens on one port of every address there is and hands each connection on. The kernel gives the lab
 * all addresses, so `arrival.address` tells which server the client believes it speaks to.
 */
export async function listenEverywhere(options: {
  port: number;
  recorder: Recorder;
  hosts: HostTable;
  accept: Accept;
}): Promise<Server> {
  const { port, recorder, hosts, accept } = options;
  const server = createServer({ noDelay: true }, (socket) => {
    const arrival = { address: plainAddress(socket.localAddress), port, client: plainAddress(socket.remoteAddress) };
    recorder.connection({ transport: "tcp", ...arrival });
    // Clients of tests are killed in the middle of things; that is no event for the lab.
    socket.on("error", () => socket.destroy());
    const behaviour = hosts.find(arrival.address);
    if (behaviour === "reset") socket.resetAndDestroy();
    else if (behaviour === "silent") socket.resume();
    else void handOver(accept, socket, arrival);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "::", backlog: 4096 }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return server;
}

async function handOver(accept: Accept, socket: Socket, arrival: Arrival): Promise<void> {
  try {
    await accept(socket, arrival);
  } catch (error) {
    process.stderr.write(`lab: ${arrival.address} port ${arrival.port}: ${String(error)}\n`);
    socket.destroy();
  }
}

/** Sends everything back. */
export function echo(socket: Socket): void {
  socket.pipe(socket);
}
