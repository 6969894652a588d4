import { createServer, type Server, type Socket } from "node:net";
import { FrameReader, writeFrame } from "./frame.ts";
import type { NameServer, Reply } from "./name-server.ts";

const MAX_CONNECTIONS = 100;
/** From one whole question to the next; bytes alone do not count, so that a slow sender holds nothing. */
const IDLE_MS = 10_000;
/** No question is longer; whoever sends more is no client. */
const MAX_QUESTION_BYTES = 4096;
const MAX_UNANSWERED = 16;
const TCP_LIMIT = 65_535;

/** Answers DNS by TCP on an inherited socket that listens already. */
export function serveStreams(server: NameServer, { fd }: { fd: number }): Promise<Server> {
  const listener = createServer((socket) => serveConnection(server, socket));
  listener.maxConnections = MAX_CONNECTIONS;
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen({ fd }, () => {
      listener.off("error", reject);
      listener.on("error", () => {});
      resolve(listener);
    });
  });
}

/** Answers go out in the order in which they are ready; clients tell them apart by their ids (RFC 7766). */
function serveConnection(server: NameServer, socket: Socket): void {
  const frames = new FrameReader(MAX_QUESTION_BYTES);
  let timer = setTimeout(() => socket.destroy(), IDLE_MS);
  let unanswered = 0;
  const settle = (reply: Reply): void => {
    unanswered -= 1;
    if (socket.destroyed) return;
    if (reply !== undefined) socket.write(writeFrame(reply));
    if (unanswered < MAX_UNANSWERED && socket.writableLength < TCP_LIMIT) socket.resume();
  };
  socket.on("error", () => socket.destroy());
  socket.on("close", () => clearTimeout(timer));
  socket.on("drain", () => socket.resume());
  socket.on("data", (chunk) => {
    for (const message of frames.push(chunk)) {
      if (message === undefined) {
        socket.destroy();
        return;
      }
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), IDLE_MS);
      unanswered += 1;
      const reply = server.answer(message, TCP_LIMIT);
      if (reply instanceof Promise) void reply.then(settle);
      else settle(reply);
    }
    if (unanswered >= MAX_UNANSWERED || socket.writableLength >= TCP_LIMIT) socket.pause();
  });
}
