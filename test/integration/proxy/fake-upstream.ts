import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import packet, { type Answer, type Packet } from "dns-packet";

export type Asked = { name: string; type: string; transport: "udp" | "tcp"; message: Buffer; from: { address: string; port: number } };
/** What to say to a question: records, or a whole message, or several of them, or nothing. */
export type Script = (asked: Asked, query: Packet) => readonly Answer[] | { rcode: number; answers?: readonly Answer[]; authorities?: readonly Answer[] } | { messages: readonly Buffer[] } | undefined;

/** A resolver on port 53 of a loopback address, that records every question and answers by a script. */
export class FakeUpstream {
  readonly asked: Asked[] = [];
  script: Script;
  readonly address: string;
  private readonly udp: UdpSocket;
  private readonly tcp: Server;

  private constructor(address: string, script: Script, sockets: { udp: UdpSocket; tcp: Server }) {
    this.address = address;
    this.script = script;
    this.udp = sockets.udp;
    this.tcp = sockets.tcp;
  }

  static async listen(address: string, script: Script): Promise<FakeUpstream> {
    const udp = createSocket("udp4");
    const tcp = createServer();
    const upstream = new FakeUpstream(address, script, { udp, tcp });
    udp.on("message", (message, from) => upstream.answerDatagram(message, from));
    tcp.on("connection", (socket) => {
      socket.on("error", () => socket.destroy());
      socket.on("data", (frame: Buffer) => {
        for (const reply of upstream.reply(frame.subarray(2), "tcp", { address: "", port: 0 })) {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(reply.length);
          socket.write(Buffer.concat([length, reply]));
        }
      });
    });
    udp.bind(53, address);
    await once(udp, "listening");
    tcp.listen(53, address);
    await once(tcp, "listening");
    return upstream;
  }

  names(): string[] {
    return this.asked.map(({ name, type }) => `${name.toLowerCase()} ${type}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.udp.close();
    this.tcp.close();
    await once(this.tcp, "close");
  }

  private answerDatagram(message: Buffer, from: RemoteInfo): void {
    for (const reply of this.reply(message, "udp", from)) this.udp.send(reply, from.port, from.address);
  }

  private reply(message: Buffer, transport: "udp" | "tcp", from: Asked["from"]): readonly Buffer[] {
    const query = packet.decode(message);
    const [question] = query.questions ?? [];
    if (question === undefined) return [];
    const asked = { name: question.name, type: question.type, transport, message, from };
    this.asked.push(asked);
    const said = this.script(asked, query);
    if (said === undefined) return [];
    if ("messages" in said) return said.messages;
    const { rcode, answers, authorities } = "rcode" in said ? said : { rcode: 0, answers: said, authorities: [] };
    return [encodeAnswer(query, { rcode, answers: answers ?? [], authorities: authorities ?? [] })];
  }
}

/** An answer to this question, as an honest resolver writes it. */
export function encodeAnswer(query: Packet, { rcode = 0, answers = [], authorities = [], flags = 0 }: { rcode?: number; answers?: readonly Answer[]; authorities?: readonly Answer[]; flags?: number }): Buffer {
  return packet.encode({ type: "response", id: query.id ?? 0, flags: 0x0180 | rcode | flags, questions: query.questions ?? [], answers: [...answers], authorities: [...authorities] });
}
