import packet from "dns-packet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAnswerer } from "../../lab/dns-answer.ts";
import { answerMessage } from "../../lab/dns-message.ts";
import { buildZone } from "../../lab/zone.ts";

const make = () => createAnswerer(buildZone(["known.test"]));
const addresses = (reply: { answers: { type: string }[] }, kind: string) => reply.answers.flatMap((record) => (record.type === kind && "data" in record ? [record.data] : []));

describe("answers of the lab's resolver", () => {
  it("answers A and AAAA of a known name in any letter case, keeping the case asked", () => {
    const reply = make().answer({ name: "KnOwN.test", type: "AAAA" });
    expect(reply).toMatchObject({ rcode: "NOERROR", answers: [{ type: "AAAA", name: "KnOwN.test" }] });
  });

  it("answers NXDOMAIN for an unknown name and NODATA for another type", () => {
    expect(make().answer({ name: "unknown.test", type: "A" }).rcode).toBe("NXDOMAIN");
    expect(make().answer({ name: "known.test", type: "MX" })).toMatchObject({ rcode: "NOERROR", answers: [] });
  });

  it("follows a chain of three aliases to its address", () => {
    const { answers } = make().answer({ name: "chain.lab-names.example", type: "A" });
    expect(answers.map(({ type }) => type)).toEqual(["CNAME", "CNAME", "CNAME", "A"]);
  });

  it("follows an alias to a name that reads like an address", () => {
    const { answers } = make().answer({ name: "literal-alias.lab-names.example", type: "A" });
    expect(answers).toMatchObject([{ type: "CNAME", data: "93.184.216.6" }, { type: "A", name: "93.184.216.6", data: "93.184.216.6" }]);
  });

  it("ends in an alias that points at itself", () => {
    expect(make().answer({ name: "cname-loop.lab-names.example", type: "A" }).answers.length).toBe(16);
  });

  it("rotates the order of addresses", () => {
    const answerer = make();
    const first = () => addresses(answerer.answer({ name: "rotating.lab-names.example", type: "A" }), "A")[0];
    expect([first(), first(), first(), first()]).toEqual(["93.184.217.1", "93.184.217.2", "93.184.217.3", "93.184.217.1"]);
  });

  it("prefers the exact behaviour to the wildcard and that to the general one", () => {
    const answerer = make();
    answerer.change({ "*": { delayMs: 20, ttl: 1 }, "*.test": { ttl: 2 }, "known.test": { ttl: 3 } });
    expect(answerer.answer({ name: "known.test", type: "A" })).toMatchObject({ delayMs: 20, answers: [{ ttl: 3 }] });
    expect(answerer.answer({ name: "github.com", type: "A" })).toMatchObject({ delayMs: 20, answers: [{ ttl: 1 }] });
    answerer.change({ "known.test": null });
    expect(answerer.answer({ name: "known.test", type: "A" })).toMatchObject({ answers: [{ ttl: 2 }] });
  });

  it("keeps a name unknown when a behaviour only delays it", () => {
    const answerer = make();
    answerer.change({ "*": { delayMs: 5 } });
    expect(answerer.answer({ name: "unknown.test", type: "A" })).toMatchObject({ rcode: "NXDOMAIN", delayMs: 5 });
  });

  it("fails the first questions only", () => {
    const answerer = make();
    answerer.change({ "known.test": { failFirst: 2 } });
    const rcodes = [1, 2, 3].map(() => answerer.answer({ name: "known.test", type: "A" }).rcode);
    expect(rcodes).toEqual(["SERVFAIL", "SERVFAIL", "NOERROR"]);
  });

  it("lets a behaviour replace an alias by addresses", () => {
    const answerer = make();
    answerer.change({ "www.example.com": { a: ["192.0.2.1"] } });
    expect(addresses(answerer.answer({ name: "www.example.com", type: "A" }), "A")).toEqual(["192.0.2.1"]);
  });

  it("forgets everything on reset", () => {
    const answerer = make();
    answerer.change({ "known.test": { silent: true } });
    answerer.reset();
    expect(answerer.answer({ name: "known.test", type: "A" }).silent).toBe(false);
  });
});

const ask = (name: string, udp: boolean, answerer = make()) => {
  const heard: string[] = [];
  const message = packet.encode({ type: "query", id: 7, flags: packet.RECURSION_DESIRED, questions: [{ type: "A", name }] });
  const reply = answerMessage({ message, udp, answerer, hear: ({ name: asked, type }) => heard.push(`${asked} ${type}`) });
  return { heard, reply: reply && packet.decode(reply.message) };
};

describe("messages of the lab's resolver", () => {
  it("hears the name as it was asked and answers with the same id", () => {
    const { heard, reply } = ask("KNOWN.test", true);
    expect(heard).toEqual(["KNOWN.test A"]);
    expect(reply).toMatchObject({ id: 7, rcode: "NOERROR", questions: [{ name: "KNOWN.test" }] });
  });

  it("truncates a long answer over UDP and sends it whole over TCP", () => {
    const answerer = make();
    answerer.change({ "known.test": { a: Array.from({ length: 60 }, (_, index) => `192.0.2.${index}`) } });
    expect(ask("known.test", true, answerer).reply).toMatchObject({ flag_tc: true, answers: [] });
    expect(ask("known.test", false, answerer).reply?.answers).toHaveLength(60);
  });

  it.each([
    ["another id", { lie: "id" as const }, { id: 8, questions: [{ name: "known.test" }] }],
    ["another question", { lie: "question" as const }, { id: 7, questions: [{ name: "not-known.test" }] }],
  ])("lies with %s when told to", (_, behaviour, expected) => {
    const answerer = make();
    answerer.change({ "known.test": behaviour });
    expect(ask("known.test", true, answerer).reply).toMatchObject(expected);
  });

  it("is silent when told to, after hearing", () => {
    const { heard, reply } = ask("no-dns.lab-names.example", true);
    expect({ heard, reply }).toEqual({ heard: ["no-dns.lab-names.example A"], reply: undefined });
  });

  it("survives any bytes", () => {
    const answerer = make();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), fc.boolean(), (bytes, udp) => {
        expect(() => answerMessage({ message: Buffer.from(bytes), udp, answerer, hear: () => {} })).not.toThrow();
      }),
    );
  });
});
