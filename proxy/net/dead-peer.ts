import type { Socket } from "node:net";

const LOOK_MS = 5000;

const watched = new Set<Socket>();
let timer: NodeJS.Timeout | undefined;

/**
 * Ends a socket of HTTP/2 whose other side is gone. Node 24 does not notice a write that fails at once: it waits
 * for that write for ever, and reads nothing meanwhile, so that the connection would stay until its idle limit.
 */
export function endWhenGone(socket: Socket): void {
  watched.add(socket);
  socket.once("close", () => forget(socket));
  timer ??= setInterval(look, LOOK_MS).unref();
}

function forget(socket: Socket): void {
  watched.delete(socket);
  if (watched.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

function look(): void {
  for (const socket of watched) if (isGone(socket)) socket.destroy();
}

/** The system knows no other side of a connection that was reset. */
function isGone(socket: Socket): boolean {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (typeof handle !== "object" || handle === null) return false;
  const getPeerName: unknown = Reflect.get(handle, "getpeername");
  return typeof getPeerName === "function" && Reflect.apply(getPeerName, handle, [{}]) !== 0;
}
