import { expect, test } from "vitest";
import { parseAddress, type Address } from "../../../policy/address.ts";
import { type BoxLookupParts, lookupInBox } from "../../../proxy/access/box-lookup.ts";
import { addressRecord, encodeChain } from "../../../proxy/dns/answer-chain.ts";
import type { HeldAnswer } from "../../../proxy/dns/held-answer.ts";
import { readQuery } from "../../../proxy/dns/query.ts";
import { encodeQuestion } from "../../../proxy/dns/upstream-question.ts";

type Plan = { A?: readonly string[] | "never" | "fails"; AAAA?: readonly string[] | "never" | "fails" };

const NAME = "a.example";

function address(text: string): Address {
  const parsed = parseAddress(text);
  if (!parsed.ok) throw new Error(text);
  return parsed.value;
}

function hold(texts: readonly string[], freshUntil: number, denied = false): HeldAnswer {
  const records = texts.map((text) => addressRecord(NAME, address(text), 60));
  const tally = { key: "", until: 0, count: 0, kept: undefined, facts: { action: denied ? "deny" : "allow", host: NAME, reason: denied ? "not_allowed_local" : "allowed", rule: undefined, detail: denied ? "it leads inside" : undefined, type: "A", addresses: "" } } as const;
  return { ...encodeChain({ rcode: 0, aliases: [], records }, NAME), born: Date.now(), freshUntil, epoch: 1, tally, partial: false };
}

function play(plan: Plan, { cached = false, denied = false }: { cached?: boolean; denied?: boolean } = {}): BoxLookupParts & { asked: string[]; epoch: { now: number } } {
  const asked: string[] = [];
  const epoch = { now: 1 };
  const answer = (type: "A" | "AAAA"): HeldAnswer | "never" | "fails" => {
    const planned = plan[type] ?? [];
    return typeof planned === "string" ? planned : hold(planned, Date.now() + 1000, denied);
  };
  return {
    asked,
    epoch,
    live: () => ({ epoch: epoch.now }),
    cache: {
      find: (key) => {
        const found = cached ? answer(key.endsWith("\u0001") ? "A" : "AAAA") : undefined;
        return typeof found === "string" ? undefined : found;
      },
    },
    resolver: {
      resolve: ({ question }) => {
        const type = question.type === 1 ? "A" : "AAAA";
        asked.push(type);
        const found = answer(type);
        return found === "never" ? new Promise(() => undefined) : Promise.resolve(found === "fails" ? undefined : found);
      },
    },
  };
}

test.each<{ name: string; plan: Plan; texts: readonly string[] }>([
  { name: "both families in turn, so that none is at the end of the other's", plan: { A: ["192.0.2.1", "192.0.2.2", "192.0.2.3"], AAAA: ["2001:db8::1"] }, texts: ["192.0.2.1", "2001:db8::1", "192.0.2.2", "192.0.2.3"] },
  { name: "one family alone", plan: { AAAA: ["2001:db8::1", "2001:db8::2"] }, texts: ["2001:db8::1", "2001:db8::2"] },
  { name: "one family while the other's answer never comes", plan: { A: ["192.0.2.1"], AAAA: "never" }, texts: ["192.0.2.1"] },
  { name: "the other way round", plan: { A: "never", AAAA: ["2001:db8::1"] }, texts: ["2001:db8::1"] },
  { name: "one family where the other cannot be had", plan: { A: ["192.0.2.1"], AAAA: "fails" }, texts: ["192.0.2.1"] },
])("a name leads to $name", async ({ plan, texts }) => {
  const found = await lookupInBox(play(plan))(NAME);
  expect(found).toMatchObject({ ok: true, addresses: texts.map((text) => ({ text })) });
});

test.each<{ name: string; plan: Plan; denied?: boolean; said: object }>([
  { name: "nothing at all", plan: {}, said: { ok: false, why: "the name has no address", refused: undefined } },
  { name: "what the policy does not let through", plan: {}, denied: true, said: { ok: false, refused: { reason: "not_allowed_local", detail: "it leads inside" } } },
  { name: "no answer of either family", plan: { A: "fails", AAAA: "fails" }, said: { ok: false, why: "the box's resolver has no answer now" } },
  { name: "no address of one and no answer of the other", plan: { AAAA: "fails" }, said: { ok: false, why: "the box's resolver has no answer now" } },
])("a name that leads to $name is none to dial", async ({ plan, denied, said }) => {
  const { refused, ...found } = { refused: undefined, ...(await lookupInBox(play(plan, { denied: denied === true }))(NAME)) };
  expect({ ...found, refused }).toMatchObject(said);
});

test("what the resolver holds already is found at once, and decoded once", () => {
  const parts = play({ A: ["192.0.2.1"], AAAA: ["2001:db8::1"] }, { cached: true });
  const lookup = lookupInBox(parts);
  const found = lookup(NAME);
  expect(found).toMatchObject({ ok: true, addresses: [{ text: "192.0.2.1" }, { text: "2001:db8::1" }] });
  expect(lookup(NAME)).toBe(found);
  expect(parts.asked).toEqual([]);
});

test("under another policy a name is found anew", async () => {
  const parts = play({ A: ["192.0.2.1"] });
  const lookup = lookupInBox(parts);
  await lookup(NAME);
  await lookup(NAME);
  expect(parts.asked).toHaveLength(2);
  parts.epoch.now = 2;
  await lookup(NAME);
  expect(parts.asked).toHaveLength(4);
});

test("the key of a question is that of the resolver's own clients", async () => {
  const keys: string[] = [];
  const parts = play({});
  await lookupInBox({ ...parts, cache: { find: (key) => void keys.push(key) } })("Some-Name.example".toLowerCase());
  const messages = [1, 28].map((type) => readQuery(withoutEdns(encodeQuestion({ name: "some-name.example", type }))));
  expect(keys).toEqual(messages.map((read) => (read.kind === "query" ? read.query.key : "")));
});

test("without a policy nothing is asked", () => {
  const parts = play({});
  expect(lookupInBox({ ...parts, live: () => undefined })(NAME)).toMatchObject({ ok: false });
  expect(parts.asked).toEqual([]);
});

function withoutEdns({ message, questionEnd }: ReturnType<typeof encodeQuestion>): Buffer {
  const plain = Buffer.from(message.subarray(0, questionEnd));
  plain.writeUInt16BE(0, 10);
  return plain;
}
