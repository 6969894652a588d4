import { createSocket } from "node:dgram";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { ask, encodeQuery, exchange, exchangeStream, read } from "./dns-client.ts";
import { FakeUpstream, type Script } from "./fake-upstream.ts";
import { allowing, startResolver } from "./resolver-process.ts";

const PACKETS = 100_000;
const ALLOWED = "api.example.com";
const honest: Script = ({ name, type }) => (type === "A" ? [{ type: "A", name, ttl: 300, data: "93.184.216.34" }] : []);

/** A generator with a fixed seed (mulberry32): the same packets in every run. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function makePacket(random: (below: number) => number): Buffer {
  if (random(10) === 0) return Buffer.from(Array.from({ length: random(80) }, () => random(256)));
  const names = [ALLOWED, ALLOWED, ALLOWED, ALLOWED, "api.example.co", "evil.example.org", "x.api.example.com", "API.EXAMPLE.COM", "a".repeat(63), `${"b.".repeat(100)}com`];
  const types = ["A", "A", "A", "AAAA", "TXT", "ANY", "HTTPS", "AXFR", "CNAME"] as const;
  const message = encodeQuery({ name: names[random(names.length)] ?? ALLOWED, type: types[random(types.length)] ?? "A", id: random(65_536), ...(random(2) === 0 ? { udpSize: random(65_536) } : {}) });
  for (let changes = random(4); changes > 0; changes -= 1) message[random(message.length)] = random(256);
  switch (random(6)) {
    case 0:
      return message.subarray(0, random(message.length));
    case 1:
      return Buffer.concat([message, Buffer.from(Array.from({ length: random(40) }, () => random(256)))]);
    case 2:
      message.writeUInt16BE(0xc000 | random(64), 12);
      return message;
    default:
      return message;
  }
}

describe("hostile questions", () => {
  test(`${PACKETS} mutated packets: no crash, no answer for another name, no upstream question for a name that is not allowed`, async () => {
    await using upstream = await FakeUpstream.listen("127.53.2.1", honest);
    await using resolver = await startResolver(allowing([ALLOWED]), { upstreams: [upstream.address] });
    const pid = resolver.pid();
    const random = makeRandom(20_260_101);
    const sent = new Map<number, Buffer[]>();
    const wrong: string[] = [];
    const counts = { replies: 0, answers: 0 };
    const socket = createSocket("udp4");
    let sentinel = "";
    let reached: (() => void) | undefined;
    socket.on("message", (reply) => {
      const id = reply.readUInt16BE(0);
      const end = reply.readUInt16BE(4) === 0 ? 12 : questionEnd(reply);
      if (reply.toString("latin1", 12, end).includes(sentinel) && sentinel !== "") {
        reached?.();
        return;
      }
      counts.replies += 1;
      if (reply.readUInt16BE(6) > 0) counts.answers += 1;
      const question = reply.subarray(12, end);
      const known = sent.get(id)?.some((message) => message.subarray(12, end).equals(question));
      const name = reply.readUInt16BE(6) > 0 ? read(reply).packet.questions?.[0]?.name.toLowerCase() : ALLOWED;
      if ((reply.readUInt8(2) & 0x80) === 0 || known !== true || name !== ALLOWED) wrong.push(reply.toString("hex"));
    });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    for (let done = 0; done < PACKETS; done += 100) {
      for (let index = 0; index < 100; index += 1) {
        const message = makePacket(random);
        if (message.length >= 2) sent.set(message.readUInt16BE(0), [...(sent.get(message.readUInt16BE(0)) ?? []), message]);
        socket.send(message, resolver.port, "127.0.0.1");
      }
      sentinel = `sentinel${done}`;
      const passed = new Promise<void>((resolve) => {
        reached = resolve;
      });
      socket.send(encodeQuery({ name: `${sentinel}.invalid` }), resolver.port, "127.0.0.1");
      await passed;
    }
    socket.close();
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(counts.answers).toBeGreaterThan(1000);
    expect(counts.replies).toBeGreaterThan(PACKETS / 2);
    expect([...new Set(upstream.asked.map(({ name }) => name.toLowerCase()))]).toEqual([ALLOWED]);
    expect(resolver.pid()).toBe(pid);
  });

  const plain = encodeQuery({ name: ALLOWED });
  const edit = (change: (message: Buffer) => void): Buffer => {
    const message = Buffer.from(plain);
    change(message);
    return message;
  };
  const second = Buffer.concat([plain, plain.subarray(12)]);
  second.writeUInt16BE(2, 4);

  test.for([
    { what: "two questions in one packet", message: second, code: "FORMERR" },
    { what: "no question at all", message: edit((message) => message.writeUInt16BE(0, 4)), code: "FORMERR" },
    { what: "a pointer to itself", message: edit((message) => message.writeUInt16BE(0xc00c, 12)), code: "FORMERR" },
    { what: "a question that brings an answer", message: edit((message) => message.writeUInt16BE(1, 6)), code: "FORMERR" },
    { what: "bytes behind the question", message: Buffer.concat([plain, Buffer.from("more")]), code: "FORMERR" },
    { what: "an update", message: edit((message) => message.writeUInt8(0x29, 2)), code: "NOTIMP" },
    { what: "class CHAOS", message: edit((message) => message.writeUInt16BE(3, message.length - 2)), code: "REFUSED" },
    { what: "everything about an allowed name", message: encodeQuery({ name: ALLOWED, type: "ANY" }), code: "REFUSED" },
    { what: "a transfer of an allowed zone", message: encodeQuery({ name: ALLOWED, type: "AXFR" }), code: "REFUSED" },
    { what: "HTTPS of an allowed name, which has no data", message: encodeQuery({ name: ALLOWED, type: "HTTPS" }), code: "NOERROR" },
    { what: "the plain question, as the control", message: plain, code: "NOERROR" },
  ])("$code for $what", async ({ message, code }) => {
    await using upstream = await FakeUpstream.listen("127.53.2.2", honest);
    await using resolver = await startResolver(allowing([ALLOWED]), { upstreams: [upstream.address] });
    const reply = read(await exchange(resolver.port, message));
    expect(reply.code).toBe(code);
    expect(upstream.asked.length).toBe(message.equals(plain) ? 1 : 0);
  });

  test("answers TCP questions split at every byte, several on one connection, and ends one that sends an empty frame", async () => {
    await using upstream = await FakeUpstream.listen("127.53.2.3", honest);
    await using resolver = await startResolver(allowing([ALLOWED]), { upstreams: [upstream.address] });
    const frame = Buffer.concat([Buffer.from([0, plain.length]), plain]);
    const bytes = [...frame, ...frame].map((byte) => Buffer.from([byte]));
    const heard = await exchangeStream(resolver.port, bytes, 2);
    expect(heard.map((message) => read(message).addresses)).toEqual([["93.184.216.34"], ["93.184.216.34"]]);
    expect(await exchangeStream(resolver.port, [Buffer.from([0, 0]), frame], 2)).toEqual([]);
    expect((await ask(resolver.port, ALLOWED)).code).toBe("NOERROR");
  });
});

function questionEnd(message: Buffer): number {
  let at = 12;
  while (at < message.length && (message[at] ?? 0) !== 0) at += (message[at] ?? 0) + 1;
  return at + 5;
}
