import { createSocket } from "node:dgram";
import { connect } from "node:net";
import packet, { type Packet } from "dns-packet";
import { TYPE } from "../../../proxy/dns/wire.ts";

export type Heard = { code: string; addresses: string[]; packet: Packet; bytes: Buffer };
export type TypeName = keyof typeof TYPE;

/** The bytes of a question; `udpSize` adds EDNS. */
export function encodeQuery({ name, type = "A", id = 4711, udpSize }: { name: string; type?: TypeName; id?: number; udpSize?: number }): Buffer {
  const head = Buffer.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, udpSize === undefined ? 0 : 1]);
  head.writeUInt16BE(id);
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label, "latin1")]);
  const tail = Buffer.from([0, TYPE[type] >> 8, TYPE[type] & 0xff, 0, 1]);
  const edns = udpSize === undefined ? Buffer.alloc(0) : Buffer.from([0, 0, 41, udpSize >> 8, udpSize & 0xff, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([head, Buffer.from(labels), tail, edns]);
}

/** Asks one question by UDP and reads the answer. */
export async function ask(port: number, name: string, type: TypeName = "A"): Promise<Heard> {
  return read(await exchange(port, encodeQuery({ name, type })));
}

/** Sends one datagram and waits for the answer. */
export async function exchange(port: number, message: Buffer, address = "127.0.0.1"): Promise<Buffer> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("message", resolve);
      socket.send(message, port, address);
    });
  } finally {
    socket.close();
  }
}

/** Sends chunks on one connection and collects the messages that come back until it is closed or `count` of them are there. */
export function exchangeStream(port: number, chunks: readonly Buffer[], count: number, address = "127.0.0.1"): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, address);
    const heard: Buffer[] = [];
    let buffered = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("close", () => resolve(heard));
    socket.on("data", (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
        const end = 2 + buffered.readUInt16BE(0);
        heard.push(buffered.subarray(2, end));
        buffered = buffered.subarray(end);
      }
      if (heard.length >= count) socket.destroy();
    });
    socket.setNoDelay(true);
    void (async () => {
      for (const chunk of chunks) {
        socket.write(chunk);
        await new Promise((next) => setImmediate(next));
      }
    })();
  });
}

const CODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];

export function read(bytes: Buffer): Heard {
  const decoded = packet.decode(bytes);
  const code = CODES[bytes.readUInt8(3) & 15] ?? "";
  const addresses = (decoded.answers ?? []).flatMap((answer) => (answer.type === "A" || answer.type === "AAAA" ? [answer.data] : []));
  return { code, addresses, packet: decoded, bytes };
}
