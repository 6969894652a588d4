import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { isIPv6, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Answerer } from "./dns-answer.ts";
import { answerMessage } from "./dns-message.ts";
import { plainAddress, type Recorder } from "./recorder.ts";

type Context = { answerer: Answerer; recorder: Recorder };

/**
 * Answers DNS on UDP port 53 of one address. One socket for each address, because Node cannot tell
 * which of its addresses a datagram on a wildcard socket was sent to, and the answer must come from it.
 */
export async function serveDnsDatagrams(address: string, { answerer, recorder }: Context): Promise<UdpSocket> {
  const socket = createSocket({ type: isIPv6(address) ? "udp6" : "udp4", recvBufferSize: 4 * 1024 * 1024 });
  socket.on("message", (message, from) => {
    const reply = answerMessage({
      message,
      udp: true,
      answerer,
      hear: (heard) => recorder.question({ ...heard, transport: "udp", server: address, client: from.address }),
    });
    if (reply === undefined) return;
    const send = () => {
      // The box may be gone by now; a resolver does not mind.
      socket.send(reply.message, from.port, from.address, () => {});
    };
    if (reply.delayMs === 0) send();
    else setTimeout(send, reply.delayMs);
  });
  await bindUdp(socket, 53, address);
  return socket;
}

/** Answers DNS messages with their two-byte lengths on a byte stream: TCP, or the inside of TLS (RFC 7858). */
export function serveDnsStream(socket: Socket, transport: "tcp" | "tls", { answerer, recorder }: Context): void {
  let buffered = Buffer.alloc(0);
  const server = plainAddress(socket.localAddress);
  const client = plainAddress(socket.remoteAddress);
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      const end = 2 + buffered.readUInt16BE(0);
      const message = buffered.subarray(2, end);
      buffered = buffered.subarray(end);
      const reply = answerMessage({
        message,
        udp: false,
        answerer,
        hear: (heard) => recorder.question({ ...heard, transport, server, client }),
      });
      if (reply === undefined) continue;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.message.length);
      const send = () => socket.writable && socket.write(Buffer.concat([length, reply.message]));
      if (reply.delayMs === 0) send();
      else setTimeout(send, reply.delayMs);
    }
  });
}

/** Answers one DNS message from an HTTPS request (RFC 8484); undefined for silence. */
export async function answerDnsRequest(
  message: Buffer,
  peer: { server: string; client: string },
  { answerer, recorder }: Context,
): Promise<Buffer | undefined> {
  const hear = (heard: { name: string; type: string }) => recorder.question({ ...heard, transport: "https", ...peer });
  const reply = answerMessage({ message, udp: false, answerer, hear });
  if (reply !== undefined && reply.delayMs > 0) await delay(reply.delayMs);
  return reply?.message;
}

/** Sends every datagram back to where it came from, on one address and port. */
export async function serveUdpEcho(address: string, port: number, recorder: Recorder): Promise<UdpSocket> {
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  socket.on("message", (message, from) => {
    recorder.connection({ transport: "udp", address, port, client: from.address });
    socket.send(message, from.port, from.address, () => {});
  });
  await bindUdp(socket, port, address);
  return socket;
}

function bindUdp(socket: UdpSocket, port: number, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ port, address, exclusive: true }, () => {
      socket.off("error", reject);
      // ICMP errors for answers to a box that is gone surface here.
      socket.on("error", () => {});
      resolve();
    });
  });
}
