import packet, { type Answer, type Packet } from "dns-packet";
import type { Answerer, Rcode, Reply } from "./dns-answer.ts";
import type { RecordedQuestion } from "./control-schema.ts";

const RCODES: Record<Rcode, number> = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 };
const UDP_LIMIT = 512;

/** The wire form of an answer, and how long to wait before it is sent. */
export type WireReply = { message: Buffer; delayMs: number };

type Heard = Pick<RecordedQuestion, "name" | "type">;

/**
 * Answers one DNS message; undefined means silence. `hear` is told of every question before anything is
 * decided. A message that cannot be read is answered FORMERR and heard as type MALFORMED.
 */
export function answerMessage(options: {
  message: Buffer;
  udp: boolean;
  answerer: Answerer;
  hear: (heard: Heard) => void;
}): WireReply | undefined {
  const { message, udp, answerer, hear } = options;
  const query = decodeQuery(message);
  const question = query?.questions?.[0];
  if (query === undefined || question === undefined) {
    hear({ name: "", type: "MALFORMED" });
    return message.length < 2 ? undefined : { message: encodeError(message.readUInt16BE(0)), delayMs: 0 };
  }
  hear({ name: question.name, type: question.type });
  const reply = answerer.answer(question);
  if (reply.silent) return undefined;
  return { message: encodeReply({ query, reply, udp }), delayMs: reply.delayMs };
}

function encodeReply({ query, reply, udp }: { query: Packet; reply: Reply; udp: boolean }): Buffer {
  const [question] = query.questions ?? [];
  const edns = query.additionals?.find((record) => record.type === "OPT");
  const asked = question === undefined ? [] : [reply.lie === "question" ? { ...question, name: `not-${question.name}` } : question];
  const head: Packet = {
    type: "response",
    id: ((query.id ?? 0) + (reply.lie === "id" ? 1 : 0)) & 0xff_ff,
    flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | RCODES[reply.rcode],
    questions: asked,
    additionals: edns === undefined ? [] : [{ type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0, options: [], extendedRcode: 0, ednsVersion: 0, flag_do: false }],
  };
  const full = packet.encode({ ...head, answers: reply.answers, authorities: reply.answers.length === 0 ? [startOfAuthority()] : [] });
  const limit = edns === undefined ? UDP_LIMIT : Math.max(UDP_LIMIT, edns.udpPayloadSize);
  if (!udp || (!reply.truncate && full.length <= limit)) return full;
  return packet.encode({ ...head, flags: (head.flags ?? 0) | packet.TRUNCATED_RESPONSE });
}

function startOfAuthority(): Answer {
  const data = { mname: "ns.lab-names.example", rname: "lab.lab-names.example", serial: 1, refresh: 60, retry: 60, expire: 60, minimum: 30 };
  return { type: "SOA", name: "lab-names.example", ttl: 30, data };
}

function encodeError(id: number): Buffer {
  return packet.encode({ type: "response", id, flags: RCODES.FORMERR });
}

function decodeQuery(message: Buffer): Packet | undefined {
  try {
    const query = packet.decode(message);
    return query.type === "query" ? query : undefined;
  } catch {
    // dns-packet throws RangeError and plain Error alike for bytes it cannot read.
    return undefined;
  }
}
