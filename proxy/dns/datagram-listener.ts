import { createSocket, type Socket } from "node:dgram";
import type { NameServer } from "./name-server.ts";

/** Answers DNS by UDP on an inherited socket that is bound already. */
export function serveDatagrams(server: NameServer, { fd, family }: { fd: number; family: 4 | 6 }): Promise<Socket> {
  const socket = createSocket({
    type: family === 4 ? "udp4" : "udp6",
    recvBufferSize: 4 * 1024 * 1024,
    // Answers go to where the question came from: nothing is ever looked up, and nothing waits for a tick.
    lookup: (host, _options, done) => done(null, host, family),
  });
  socket.on("message", (message, from) => {
    const reply = server.answer(message, undefined);
    if (reply instanceof Promise) {
      void reply.then((later) => later !== undefined && socket.send(later, from.port, from.address, ignore));
    } else if (reply !== undefined) {
      socket.send(reply, from.port, from.address);
    }
  });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ fd }, () => {
      socket.off("error", reject);
      // Errors of single sends: the client is gone, or its port is closed.
      socket.on("error", ignore);
      resolve(socket);
    });
  });
}

function ignore(): void {
  // The client asks again if it still wants to know.
}
