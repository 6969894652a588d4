import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { EngineError } from "../../policy/errors.ts";
import { dropPrivileges, type Ids } from "../../policy/privileges.ts";
import type { Engine } from "../engine/engine.ts";

/** Joins stdin and stdout to a port of the box's own loopback; runs there with the agent's ids. */
const relayProgram = `
const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1");
process.stdin.pipe(socket).pipe(process.stdout);
socket.on("error", () => process.exit(1));
socket.on("close", () => process.exit());
`;

export type CallbackRelay = {
  engine: Engine;
  container: string;
  port: number;
  user: Ids;
  /** The container has no capability to give up, nor to change its user with. */
  joined: boolean;
};

/**
 * Lets a browser on the host reach an agent's sign-in server, which listens on the box's loopback only,
 * where a published port does not arrive. Opens nothing in the box's firewall. Returns what ends it.
 */
export async function relayCallback({ engine, container, port, user, joined }: CallbackRelay): Promise<() => void> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    const relay = engine.client.pipe(["exec", "--interactive", "--user", joined ? `${user.uid}:${user.gid}` : "0:0", container, ...(joined ? [] : dropPrivileges(user)), ...renderRelay(port)]);
    socket.pipe(relay.stdin);
    relay.stdout.pipe(socket);
    socket.on("error", relay.end);
    relay.stdin.on("error", () => socket.destroy());
  });
  server.listen({ host: "127.0.0.1", port });
  try {
    await once(server, "listening");
  } catch (error) {
    throw new EngineError(
      { what: `port ${port} of this machine is taken, and the agent's sign-in answers there`, expected: "a free port", fix: "end the program that uses it (another sign-in?)" },
      { cause: error },
    );
  }
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
}

/**
 * The relay goes through the privilege step like the agent: the engine would give it the box's capabilities.
 * Without the last option a signal from a process of the same uid opens Node's inspector, and with it the relay.
 */
function renderRelay(port: number): string[] {
  return ["/usr/bin/env", "--ignore-environment", "/usr/local/bin/node", "--disable-sigusr1", "-e", relayProgram, String(port)];
}
