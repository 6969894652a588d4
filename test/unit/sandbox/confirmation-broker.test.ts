import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Answerer, type FrontEnd, makeCallback, type Prompt, type Question } from "../../../sandbox/confirmation.ts";
import { type BrokerOptions, ConfirmationBroker } from "../../../sandbox/confirmation-broker.ts";
import type { Verdict } from "../../../sandbox/request.ts";

let count = 0;

function prompt(more: Partial<Prompt> = {}, verdict: Partial<Verdict> = {}): Prompt {
  count += 1;
  return { id: `p${count}`, sessionId: "s1", taskId: "t1", root: "/srv/work", intent: "delete", path: "/srv/work/a", verdict: { decision: "confirm", ruleId: "invariant:delete", tags: ["delete"], reason: "why", ...verdict }, ...more };
}

/** A question that only a rule of the user asks. */
const ruled = (more: Partial<Prompt> = {}, verdict: Partial<Verdict> = {}): Prompt => prompt({ intent: "read", ...more }, { ruleId: "ask", tags: [], ...verdict });

function makeBroker(reply: unknown, more: Partial<BrokerOptions> = {}): { broker: ConfirmationBroker; asked: Question[] } {
  const asked: Question[] = [];
  const frontEnd = makeCallback(async (question) => {
    asked.push(question);
    return await reply;
  });
  return { broker: new ConfirmationBroker({ frontEnds: [frontEnd], timeoutMs: 60_000, ...more }), asked };
}

function makeAlways(): NonNullable<BrokerOptions["always"]> & { known: Map<string, Answerer> } {
  const known = new Map<string, Answerer>();
  return { known, fingerprint: (id) => (id === "ask" ? "f".repeat(64) : undefined), answers: { find: (fingerprint) => known.get(fingerprint), add: ({ fingerprint, by }) => known.set(fingerprint, by).size > 0 } };
}

describe("an answer", () => {
  test.each([
    { name: "once is a yes", reply: "once", expected: { answer: "approved", scope: "once", by: "callback" } },
    { name: "session is a yes", reply: "session", expected: { answer: "approved", scope: "session", by: "callback" } },
    { name: "deny is a no", reply: "deny", expected: { answer: "denied", scope: "once", by: "callback" } },
    { name: "unavailable is nobody's", reply: "unavailable", expected: { answer: "unavailable", scope: "once", by: "nobody" } },
  ])("$name", async ({ reply, expected }) => {
    expect(await makeBroker(reply).broker.confirm(prompt())).toEqual(expected);
  });

  // Never a truthy default.
  test.each([
    { name: "true", reply: true },
    { name: "1", reply: 1 },
    { name: "yes", reply: "yes" },
    { name: "yes with a blank", reply: "yes " },
    { name: "once with a blank", reply: "once " },
    { name: "once in capitals", reply: "ONCE" },
    { name: "approved", reply: "approved" },
    { name: "the answer itself", reply: { answer: "approved", scope: "once", by: "terminal" } },
    { name: "an object", reply: {} },
    { name: "a list with a yes", reply: ["once"] },
    { name: "a text that is an object", reply: Object("once") },
    { name: "an object that says it is a yes", reply: { toString: () => "once", valueOf: () => "once" } },
    { name: "nothing", reply: undefined },
    { name: "null", reply: null },
    { name: "a symbol", reply: Symbol("once") },
    { name: "a yes for good to what only the guard asks", reply: "rule" },
  ])("$name is a no", async ({ reply }) => {
    expect(await makeBroker(reply).broker.confirm(prompt())).toMatchObject({ answer: "denied", scope: "once" });
  });

  test.each([
    { name: "a front end that rejects", ask: async () => await Promise.reject(new Error("no")) },
    { name: "one that throws at once", ask: () => { throw new Error("no"); } },
    { name: "one that rejects with a yes", ask: async () => await Promise.reject("once") },
  ] satisfies { name: string; ask: FrontEnd["ask"] }[])("$name is a no", async ({ ask }) => {
    const broker = new ConfirmationBroker({ frontEnds: [makeCallback(ask)], timeoutMs: 60_000 });
    expect(await broker.confirm(prompt())).toMatchObject({ answer: "denied" });
  });

  test.each([
    { name: "a denial is nobody's to lift", decision: "deny" as const },
    { name: "what is allowed is not asked", decision: "allow" as const },
  ])("$name", async ({ decision }) => {
    const { broker, asked } = makeBroker("session");
    expect(await broker.confirm(prompt({}, { decision }))).toMatchObject({ answer: "denied", by: "nobody" });
    expect(asked).toEqual([]);
  });
});

const answering = (kind: FrontEnd["kind"], reply: unknown): FrontEnd => ({ kind, ask: async () => await Promise.resolve(reply) });

describe("front ends", () => {
  test("are asked one after the other until one can ask somebody", async () => {
    const broker = new ConfirmationBroker({ frontEnds: [answering("terminal", "unavailable"), answering("mcp", "once"), answering("queue", "deny")], timeoutMs: 60_000 });
    expect(await broker.confirm(prompt())).toEqual({ answer: "approved", scope: "once", by: "mcp" });
  });

  test("are not asked further after a no", async () => {
    const broker = new ConfirmationBroker({ frontEnds: [answering("terminal", "deny"), answering("mcp", "once")], timeoutMs: 60_000 });
    expect(await broker.confirm(prompt())).toMatchObject({ answer: "denied", by: "terminal" });
  });

  test("may be missing, which is a no", async () => {
    expect(await new ConfirmationBroker({ frontEnds: [], timeoutMs: 60_000 }).confirm(prompt())).toEqual({ answer: "unavailable", scope: "once", by: "nobody" });
  });

  test("of more than a hundred prompts are asked a hundred", async () => {
    const { broker, asked } = makeBroker(new Promise(() => undefined));
    const waiting = Array.from({ length: 100 }, async (_, index) => await broker.confirm(prompt({ intent: "read" }, { ruleId: `r${index}` })));
    expect(await broker.confirm(prompt())).toMatchObject({ answer: "unavailable", by: "nobody" });
    expect(asked).toHaveLength(100);
    broker.forget("s1");
    expect(new Set((await Promise.all(waiting)).map(({ answer }) => answer))).toEqual(new Set(["denied"]));
  });
});

describe("time", () => {
  test("that is over is a no, and the front end is told", async () => {
    let told = false;
    const frontEnd = makeCallback(async (_question, signal) => {
      signal.addEventListener("abort", () => (told = true));
      return await new Promise(() => undefined);
    });
    expect(await new ConfirmationBroker({ frontEnds: [frontEnd], timeoutMs: 20 }).confirm(prompt())).toEqual({ answer: "timed-out", scope: "once", by: "callback" });
    expect(told).toBe(true);
  });

  test("that was over before the yes was heard makes it a no", async () => {
    let now = 0;
    const frontEnd = makeCallback(async () => {
      now = 1001;
      return await Promise.resolve("once");
    });
    expect(await new ConfirmationBroker({ frontEnds: [frontEnd], timeoutMs: 1000, now: () => now }).confirm(prompt())).toMatchObject({ answer: "timed-out" });
  });

  test("just enough of it leaves a yes a yes", async () => {
    let now = 0;
    const frontEnd = makeCallback(async () => {
      now = 1000;
      return await Promise.resolve("once");
    });
    expect(await new ConfirmationBroker({ frontEnds: [frontEnd], timeoutMs: 1000, now: () => now }).confirm(prompt())).toMatchObject({ answer: "approved" });
  });

  test("is shared by all front ends, and a yes after it changes nothing", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const frontEnds = [makeCallback(async () => { await sleep(5); return "unavailable"; }), makeCallback(async () => await promise)];
    const broker = new ConfirmationBroker({ frontEnds, timeoutMs: 30 });
    expect(await broker.confirm(prompt())).toMatchObject({ answer: "timed-out" });
    resolve("session");
    await turn();
    expect(await broker.confirm(prompt({}, { tags: ["delete", "large"] }))).toMatchObject({ answer: "approved" });
    expect(await new ConfirmationBroker({ frontEnds: [], timeoutMs: 30 }).confirm(prompt())).toMatchObject({ answer: "unavailable" });
  });
});

describe("a yes for the session", () => {
  test.each([
    { name: "holds for another path of the same folder", first: prompt(), second: prompt({ path: "/srv/work/b", taskId: "t2" }), asks: 1 },
    { name: "does not hold in another folder", first: prompt(), second: prompt({ root: "/srv/other" }), asks: 2 },
    { name: "does not hold in another session", first: prompt(), second: prompt({ sessionId: "s2" }), asks: 2 },
    { name: "does not hold for another invariant", first: prompt(), second: prompt({ intent: "write" }, { ruleId: "invariant:overwrite", tags: ["overwrite"] }), asks: 2 },
    { name: "does not hold where there is one risk more", first: prompt({ intent: "move" }, { ruleId: "invariant:move", tags: ["move"] }), second: prompt({ intent: "move" }, { ruleId: "invariant:move", tags: ["move", "overwrite"] }), asks: 2 },
    { name: "holds where a risk more is none that is asked about", first: prompt(), second: prompt({}, { tags: ["delete", "hidden"] }), asks: 1 },
    { name: "holds for the same rule, in whatever folder", first: ruled(), second: ruled({ root: "/srv/other" }), asks: 1 },
    { name: "does not hold for another intent of the same rule", first: ruled(), second: ruled({ intent: "list" }), asks: 2 },
    { name: "does not hold for another rule", first: ruled(), second: ruled({}, { ruleId: "other" }), asks: 2 },
    { name: "to a rule does not hold where the guard would ask, too", first: ruled({ intent: "write" }), second: ruled({ intent: "write" }, { tags: ["overwrite"] }), asks: 2 },
  ])("$name", async ({ first, second, asks }) => {
    const { broker, asked } = makeBroker("session");
    await broker.confirm(first);
    expect(await broker.confirm(second)).toEqual({ answer: "approved", scope: "session", by: "callback" });
    expect(asked).toHaveLength(asks);
  });

  test.each([
    { name: "once holds once", reply: "once" },
    { name: "a no is not remembered", reply: "deny" },
  ])("$name", async ({ reply }) => {
    const { broker, asked } = makeBroker(reply);
    await broker.confirm(prompt());
    await broker.confirm(prompt());
    expect(asked).toHaveLength(2);
  });

  test("ends with the session", async () => {
    const { broker, asked } = makeBroker("session");
    await broker.confirm(prompt());
    broker.forget("s1");
    await broker.confirm(prompt());
    expect(asked).toHaveLength(2);
  });

  test("also answers what waits for the same, and nothing else", async () => {
    const replies: ((reply: string) => void)[] = [];
    const aborted: boolean[] = [];
    const frontEnd = makeCallback(async (_question, signal) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const own = replies.push(resolve) - 1;
      signal.addEventListener("abort", () => (aborted[own] = true));
      return await promise;
    });
    const broker = new ConfirmationBroker({ frontEnds: [frontEnd], timeoutMs: 60_000 });
    const [first, same, other] = [broker.confirm(prompt()), broker.confirm(prompt({ path: "/srv/work/b" })), broker.confirm(prompt({ root: "/srv/other" }))];
    await turn();
    replies[0]?.("session");
    expect(await first).toMatchObject({ answer: "approved", scope: "session" });
    expect(await same).toMatchObject({ answer: "approved", scope: "session" });
    expect(aborted).toEqual([true, true]);
    replies[2]?.("deny");
    expect(await other).toMatchObject({ answer: "denied" });
  });
});

describe("a yes for good", () => {
  test("is remembered for the rule, also by the next broker", async () => {
    const always = makeAlways();
    const { broker, asked } = makeBroker("rule", { always });
    expect(await broker.confirm(ruled())).toEqual({ answer: "approved", scope: "rule", by: "callback" });
    expect(asked[0]?.scopes).toEqual(["once", "session", "rule"]);
    const next = makeBroker("deny", { always });
    expect(await next.broker.confirm(ruled({ intent: "list", sessionId: "s9" }))).toEqual({ answer: "approved", scope: "rule", by: "callback" });
    expect(next.asked).toEqual([]);
  });

  test.each([
    { name: "to an invariant", asking: prompt() },
    { name: "to a rule that asks about what the guard asks about", asking: ruled({ intent: "delete" }, { tags: ["delete"] }) },
    { name: "to a rule that nobody knows", asking: ruled({}, { ruleId: "gone" }) },
  ])("is not offered $name, and is no answer there", async ({ asking }) => {
    const { broker, asked } = makeBroker("rule", { always: makeAlways() });
    expect(await broker.confirm(asking)).toMatchObject({ answer: "denied" });
    expect(asked[0]?.scopes).toEqual(["once", "session"]);
  });

  test("does not hold where the guard would ask, too", async () => {
    const always = makeAlways();
    await makeBroker("rule", { always }).broker.confirm(ruled());
    const { broker, asked } = makeBroker("deny", { always });
    expect(await broker.confirm(ruled({ intent: "write" }, { tags: ["overwrite"] }))).toMatchObject({ answer: "denied" });
    expect(asked).toHaveLength(1);
  });

  test("that cannot be written holds once", async () => {
    const always = makeAlways();
    const { broker, asked } = makeBroker("rule", { always: { ...always, answers: { find: () => undefined, add: () => false } } });
    expect(await broker.confirm(ruled())).toEqual({ answer: "approved", scope: "once", by: "callback" });
    await broker.confirm(ruled());
    expect(asked).toHaveLength(2);
  });

  test("is not to be had without a place for it", async () => {
    const { broker, asked } = makeBroker("rule");
    expect(await broker.confirm(ruled())).toMatchObject({ answer: "denied" });
    expect(asked[0]?.scopes).toEqual(["once", "session"]);
  });
});
