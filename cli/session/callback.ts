import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { EngineError } from "../../policy/errors.ts";
import type { Engine } from "../engine/engine.ts";

/** Joins stdin and stdout to a port of the box's own loopback; runs there with the agent's ids. */
const relayProgram = `
const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1");
process.stdin.pipe(socket).pipe(process.stdout);
socket.on("error", () => process.exit(1));
socket.on("close", () => process.exit());
`;

export type CallbackRelay = { engine: Engine; container: string; port: number; user: { uid: number; gid: number } };

/**
 * Lets a browser on the host reach an agent's sign-in server, which listens on the box's loopback only,
 * where a published port does not arrive. Opens nothing in the box's firewall. Returns what ends it.
 */
export async function relayCallback({ engine, container, port, user }: CallbackRelay): Promise<() => void> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    const argv = ["exec", "--interactive", "--user", `${user.uid}:${user.gid}`, container, "/usr/local/bin/node", "-e", relayProgram, String(port)];
    const relay = engine.client.pipe(argv);
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
