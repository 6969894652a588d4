import { createServer, type Server, type Socket } from "node:net";

/** Listens on a unix socket that has this mode from its first moment on. */
export function listenOn(path: string, mode: number, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onConnection);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    // Node binds within the call, so the mask holds for this socket alone.
    const before = process.umask(0o777 & ~mode);
    server.listen(path, () => resolve(server));
    process.umask(before);
  });
}

/** Somebody who takes connections, those included that came before. */
export type Door = { open: (onConnection: (socket: Socket) => void) => void };

/** Listens at once and lets those who come wait until somebody opens. */
export async function makeDoor(path: string, mode: number): Promise<Door> {
  const waiting: Socket[] = [];
  let take = (socket: Socket): void => void waiting.push(socket);
  await listenOn(path, mode, (socket) => {
    socket.on("error", () => undefined);
    take(socket);
  });
  return {
    open: (onConnection) => {
      take = onConnection;
      for (const socket of waiting.splice(0)) onConnection(socket);
    },
  };
}
