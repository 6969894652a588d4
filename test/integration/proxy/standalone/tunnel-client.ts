import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Opens a tunnel through a proxy on loopback. Throws where it is not granted. */
export async function openTunnel(through: number, target: string): Promise<Socket> {
  const socket = connect(through, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const [answer] = await once(socket, "data");
  if (!String(answer).startsWith("HTTP/1.1 200 ")) throw new Error(`no tunnel: ${String(answer)}`);
  return socket;
}

/** Waits for the end of a connection, by a reset as well. */
export async function untilClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
}

/** Reads a connection to its end. */
export async function readAll(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await untilClosed(socket);
  return text;
}
