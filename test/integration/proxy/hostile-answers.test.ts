import { createSocket } from "node:dgram";
import packet, { type Answer } from "dns-packet";
import { describe, expect, test } from "vitest";
import { ask } from "./dns-client.ts";
import { encodeAnswer, FakeUpstream, type Script } from "./fake-upstream.ts";
import { allowing, startResolver } from "./resolver-process.ts";

const NAME = "api.example.com";
const GOOD = "93.184.216.34";
const FORGED = "93.184.216.66";
const a = (name: string, data: string, ttl = 300): Answer => ({ type: "A", name, ttl, data });

/** An upstream that lets a forgery arrive before its own answer. */
const forgedFirst = (forge: (message: Buffer) => Buffer): Script => ({ name }, query) => ({
  messages: [forge(encodeAnswer(query, { answers: [a(name, FORGED)] })), encodeAnswer(query, { answers: [a(name, GOOD)] })],
});

describe("forged answers", () => {
  test.for([
    { what: "another id", forge: (message: Buffer) => (message.writeUInt16BE(message.readUInt16BE(0) ^ 1, 0), message) },
    { what: "another question", forge: (message: Buffer) => (message.write("b", 13, "latin1"), message) },
    { what: "another type", forge: (message: Buffer) => (message.writeUInt8(28, 12 + NAME.length + 3), message) },
    { what: "no answer bit", forge: (message: Buffer) => (message.writeUInt8(message.readUInt8(2) & 0x7f, 2), message) },
  ])("with $what are passed over for the real one", async ({ forge }) => {
    await using upstream = await FakeUpstream.listen("127.53.3.1", forgedFirst(forge));
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
    expect(JSON.stringify(resolver.keeper.learned)).not.toContain(FORGED);
  });

  test("in another case are not believed: the question goes over TCP", async () => {
    const script: Script = ({ name, transport }, query) =>
      transport === "udp" ? { messages: [encodeAnswer({ ...query, questions: [{ name: swapCase(name), type: "A" }] }, { answers: [a(name, FORGED)] })] } : [a(name, GOOD)];
    await using upstream = await FakeUpstream.listen("127.53.3.1", script);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
    expect(upstream.asked.map(({ transport }) => transport)).toEqual(["udp", "tcp"]);
  });

  test("from another source never arrive, however right they are", async () => {
    const other = createSocket("udp4");
    const script: Script = ({ name, from }, query) => {
      other.send(encodeAnswer(query, { answers: [a(name, FORGED)] }), from.port, from.address);
      return [a(name, GOOD)];
    };
    await using upstream = await FakeUpstream.listen("127.53.3.1", script);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
    other.close();
  });

  test("in numbers end the guessing: the question goes over TCP", async () => {
    const script: Script = ({ name, transport }, query) =>
      transport === "udp" ? { messages: Array.from({ length: 50 }, (_, index) => encodeAnswer({ ...query, id: ((query.id ?? 0) + index + 1) & 0xff_ff }, { answers: [a(name, FORGED)] })) } : [a(name, GOOD)];
    await using upstream = await FakeUpstream.listen("127.53.3.1", script);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
  });
});

describe("what an upstream answers", () => {
  const rows: { what: string; answers: Answer[]; heard: string[]; learned: string[]; code?: string; reason?: string }[] = [
    { what: "a chain of three aliases is followed", answers: [{ type: "CNAME", name: NAME, data: "b.cdn.example", ttl: 9 }, { type: "CNAME", name: "b.cdn.example", data: "c.cdn.example", ttl: 9 }, a("c.cdn.example", GOOD)], heard: [GOOD], learned: [GOOD] },
    { what: "records of other names are left behind", answers: [a(NAME, GOOD), a("evil.example.org", FORGED)], heard: [GOOD], learned: [GOOD] },
    { what: "a private address is left out", answers: [a(NAME, "10.0.0.1")], heard: [], learned: [], reason: "not_allowed_local" },
    { what: "the metadata address is left out", answers: [a(NAME, "169.254.169.254")], heard: [], learned: [], reason: "not_allowed_local" },
    { what: "a public address beside a private one stays", answers: [a(NAME, "127.0.0.1"), a(NAME, GOOD)], heard: [GOOD], learned: [GOOD] },
    { what: "an alias that leads to a blocked name is denied", answers: [{ type: "CNAME", name: NAME, data: "blocked.example.net", ttl: 9 }, a("blocked.example.net", GOOD)], heard: [], learned: [], code: "NXDOMAIN", reason: "denied" },
    { what: "a loop of aliases is no answer", answers: [{ type: "CNAME", name: NAME, data: "b.example", ttl: 9 }, { type: "CNAME", name: "b.example", data: NAME, ttl: 9 }], heard: [], learned: [], code: "SERVFAIL" },
  ];
  test.for(rows)("$what", async ({ answers, heard, learned, code = "NOERROR", reason = "allowed" }) => {
    await using upstream = await FakeUpstream.listen("127.53.3.2", ({ name }) => answers.map((answer) => (answer.name === NAME ? { ...answer, name } : answer)));
    await using resolver = await startResolver(allowing([NAME], { blocks: [{ label: "config", words: [{ text: "blocked.example.net" }] }] }), { upstreams: [upstream.address] });
    const reply = await ask(resolver.port, NAME);
    expect(reply).toMatchObject({ code, addresses: heard });
    expect(resolver.keeper.learned.flatMap(({ addresses }) => addresses.map(({ address }) => address))).toEqual(learned);
    expect(resolver.readLog()).toMatchObject([{ host: NAME, reason }]);
  });

  test("10 KB come over TCP, to the resolver and to its client", async () => {
    const many = Array.from({ length: 100 }, (_, index) => a(NAME, `93.184.1.${index}`));
    const script: Script = ({ transport }, query) => ({ messages: [encodeAnswer(query, transport === "udp" ? { flags: packet.TRUNCATED_RESPONSE } : { answers: many })] });
    await using upstream = await FakeUpstream.listen("127.53.3.2", script);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    const reply = await ask(resolver.port, NAME);
    expect(reply.bytes.readUInt8(2) & 0x02).toBe(0x02);
    expect(reply.addresses).toEqual([]);
    expect(resolver.keeper.learned[0]?.addresses).toHaveLength(100);
  });

  test("TTL 0 is asked for again, and a huge one is cut to a day", async () => {
    let ttl = 0;
    await using upstream = await FakeUpstream.listen("127.53.3.2", ({ name }) => [a(name, GOOD, ttl)]);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    await ask(resolver.port, NAME);
    ttl = 0x7fff_ffff;
    await ask(resolver.port, NAME);
    await ask(resolver.port, NAME);
    expect(upstream.asked).toHaveLength(2);
    expect(resolver.keeper.learned.map(({ addresses }) => addresses[0]?.ttl)).toEqual([0, 86_400]);
  });
});

function swapCase(text: string): string {
  return text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase();
}
