import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { parseAddress, type Address } from "../../policy/address.ts";
import { FrameReader, writeFrame } from "./frame.ts";
import { encodeQuestion, matchAnswer, type Outgoing, type Question } from "./upstream-question.ts";

/** One resolver to ask. */
export type Upstream = { address: Address; port: number };

/** An answer that belongs to the question, not read any further; or why there is none. */
export type Exchanged = { ok: true; message: Buffer; questionEnd: number } | { ok: false; why: string };

/** Datagrams that are no answer before the question is asked over TCP: a forger gets so many guesses and no more. */
const MAX_STRANGERS = 8;

/** Asks one resolver by UDP, and by TCP where the answer is truncated, comes back in another case, or somebody seems to guess. */
export async function exchange(question: Question, upstream: Upstream, timeoutMs: number): Promise<Exchanged> {
  const heard = await exchangeDatagram(encodeQuestion(question), upstream, timeoutMs);
  return heard === "ask-by-tcp" ? exchangeStream(question, upstream, timeoutMs) : heard;
}

/** Asks one resolver by TCP only. */
export function exchangeStream(question: Question, { address, port }: Upstream, timeoutMs: number): Promise<Exchanged> {
  const outgoing = encodeQuestion(question);
  return new Promise((resolve) => {
    const frames = new FrameReader();
    const socket = connect({ host: address.text, port, family: address.family });
    const timer = setTimeout(() => finish({ ok: false, why: "no answer by TCP in time" }), timeoutMs);
    const finish = (exchanged: Exchanged): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(exchanged);
    };
    socket.once("connect", () => socket.write(writeFrame(outgoing.message)));
    socket.on("error", (error) => finish({ ok: false, why: error.message }));
    socket.on("close", () => finish({ ok: false, why: "the connection ended without an answer" }));
    socket.on("data", (chunk) => {
      for (const message of frames.push(chunk)) {
        // Nobody else can speak on this connection, so the case of the letters proves nothing here.
        if (message !== undefined && matchAnswer(outgoing, message) !== "stranger") return finish(whole(outgoing, message));
        return finish({ ok: false, why: "an answer to another question" });
      }
    });
  });
}

/**
 * One question on a socket of its own: a random port, connected, so that the kernel drops what others send.
 * What came between bind and connect is told by its source.
 */
function exchangeDatagram(outgoing: Outgoing, { address, port }: Upstream, timeoutMs: number): Promise<Exchanged | "ask-by-tcp"> {
  return new Promise((resolve) => {
    const type = address.family === 4 ? "udp4" : "udp6";
    const socket = createSocket({ type, lookup: (host, _options, done) => done(null, host, address.family) });
    const timer = setTimeout(() => finish({ ok: false, why: "no answer in time" }), timeoutMs);
    let strangers = 0;
    let finished = false;
    const finish = (exchanged: Exchanged | "ask-by-tcp"): void => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      socket.close();
      resolve(exchanged);
    };
    socket.on("error", (error) => finish({ ok: false, why: error.message }));
    socket.on("message", (message, from) => {
      const match = isFrom(from, { address, port }) ? matchAnswer(outgoing, message) : "stranger";
      const truncated = match === "answer" && (message.readUInt8(2) & 0x02) !== 0;
      if (match === "stranger") strangers += 1;
      if (match === "other-case" || truncated || strangers > MAX_STRANGERS) finish("ask-by-tcp");
      else if (match === "answer") finish(whole(outgoing, message));
    });
    socket.connect(port, address.text, () => {
      if (!finished) socket.send(outgoing.message, (error) => error !== null && finish({ ok: false, why: error.message }));
    });
  });
}

function whole({ questionEnd }: Outgoing, message: Buffer): Exchanged {
  return { ok: true, message, questionEnd };
}

function isFrom(from: { address: string; port: number }, { address, port }: Upstream): boolean {
  if (from.port !== port) return false;
  if (from.address === address.text) return true;
  const source = parseAddress(from.address);
  return source.ok && source.value.text === address.text;
}
