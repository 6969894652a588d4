import { once } from "node:events";
import { createServer, type Socket } from "node:net";

/** A server on loopback that keeps what it was told. */
export type Origin = AsyncDisposable & { port: number; connections: number; heard: Buffer[]; sockets: Socket[] };

/** What a server does with a connection beside keeping what it hears. */
export type OriginManner = (socket: Socket, origin: Origin) => void;

/** Answers what begins like a request in HTTP, with what it heard as the body; sends everything else back. */
export const echo: OriginManner = (socket) => {
  let isHttp: boolean | undefined;
  socket.on("data", (bytes: Buffer) => {
    isHttp ??= /^[A-Z]+ [^ ]* HTTP\/1\.1\r\n/.test(bytes.toString("latin1"));
    socket.write(isHttp ? `HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes.toString("latin1")}` : bytes);
  });
  socket.on("end", () => socket.end());
};

export async function startOrigin(manner: OriginManner = echo): Promise<Origin> {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const where = server.address();
  if (where === null || typeof where === "string") throw new Error("no port");
  const origin: Origin = {
    port: where.port,
    connections: 0,
    heard: [],
    sockets: [],
    [Symbol.asyncDispose]: async () => {
      for (const socket of origin.sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  server.on("connection", (socket) => {
    origin.connections += 1;
    origin.sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => origin.heard.push(bytes));
    manner(socket, origin);
  });
  return origin;
}
