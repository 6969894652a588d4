import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Call, refuseCancelled, withinCall } from "../../../../cli/mcp/call.ts";
import { bindQueue, elicitation } from "../../../../cli/mcp/front-ends.ts";
import { type Question, SCOPES } from "../../../../sandbox/confirmation.ts";

const question: Question = {
  id: "q1", sessionId: "s", taskId: "t", root: "/w", intent: "write", path: "/w/a", timeoutMs: 1000, scopes: SCOPES,
  verdict: { decision: "confirm", ruleId: "ask", tags: [], reason: "rule ask asks" },
};

function makeCallWith(elicit: Call["elicit"], signal = new AbortController().signal): Call {
  return { elicit, signal, report: () => undefined };
}

const never = new AbortController().signal;

/** What the front end makes of an answer, whatever the protocol's library would have let through. */
async function ask(content: unknown, { action = "accept", scopes = SCOPES }: { action?: "accept" | "decline" | "cancel"; scopes?: Question["scopes"] } = {}): Promise<unknown> {
  const call = makeCallWith(async () => JSON.parse(JSON.stringify({ action, content })));
  return await withinCall(call, async () => await elicitation.ask({ ...question, scopes }, never));
}

describe("an answer by a form", () => {
  test.each([
    { name: "yes, this once", content: { answer: "yes, this once" }, expected: "once" },
    { name: "for the session", content: { answer: "yes, also whatever this rule asks again in this session" }, expected: "session" },
    { name: "for good", content: { answer: "yes, always for this rule" }, expected: "rule" },
    { name: "no", content: { answer: "no" }, expected: "deny" },
    { name: "another case", content: { answer: "Yes, this once" }, expected: "deny" },
    { name: "more than the word", content: { answer: "yes, this once " }, expected: "deny" },
    { name: "the guard's own word for it", content: { answer: "once" }, expected: "deny" },
    { name: "true", content: { answer: true }, expected: "deny" },
    { name: "1", content: { answer: 1 }, expected: "deny" },
    { name: "a list", content: { answer: ["yes, this once"] }, expected: "deny" },
    { name: "another field", content: { confirm: "yes, this once" }, expected: "deny" },
    { name: "nothing", content: undefined, expected: "deny" },
  ])("$name is $expected", async ({ content, expected }) => {
    expect(await ask(content)).toBe(expected);
  });

  test("is no yes where it was not offered, declined or dismissed", async () => {
    expect(await ask({ answer: "yes, always for this rule" }, { scopes: ["once", "session"] })).toBe("deny");
    expect(await ask({ answer: "yes, this once" }, { action: "decline" })).toBe("deny");
    expect(await ask({ answer: "yes, this once" }, { action: "cancel" })).toBe("deny");
  });

  test("is unavailable where the client has no forms, and outside of any call", async () => {
    expect(await withinCall(makeCallWith(undefined), async () => await elicitation.ask(question, never))).toBe("unavailable");
    expect(await elicitation.ask(question, never)).toBe("unavailable");
  });

  test("that comes after its call was taken back is a no", async () => {
    const cancel = new AbortController();
    const call = makeCallWith(async () => {
      cancel.abort();
      return { action: "accept", content: { answer: "yes, this once" } };
    }, cancel.signal);
    expect(await withinCall(call, async () => await elicitation.ask(question, never))).toBe("deny");
    expect(() => refuseCancelled(call)).toThrow(/the request was cancelled/);
  });
});

describe("the queue within a call", () => {
  test("is asked, and hears when the call is taken back", async () => {
    const cancel = new AbortController();
    let over = false;
    const queue = bindQueue({ kind: "queue", ask: async (_question, signal) => {
      await sleep(60_000, undefined, { signal }).catch(() => (over = true));
      return "once";
    } });
    const asked = withinCall(makeCallWith(undefined, cancel.signal), async () => await queue.ask(question, never));
    cancel.abort();
    expect(await asked).toBe("deny");
    expect(over).toBe(true);
  });

  test("gives its answer on, and none to what nobody called for", async () => {
    const queue = bindQueue({ kind: "queue", ask: async () => await Promise.resolve("session") });
    expect(await withinCall(makeCallWith(undefined), async () => await queue.ask(question, never))).toBe("session");
    expect(await queue.ask(question, never)).toBe("deny");
  });
});
