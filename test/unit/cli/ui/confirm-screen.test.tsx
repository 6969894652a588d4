import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { render } from "ink-testing-library";
import { describe, expect, test } from "vitest";
import { Confirm } from "../../../../cli/ui/confirm-screen.tsx";
import { applyConfirm, beginConfirm } from "../../../../cli/ui/confirm-state.ts";
import { describePrompt, listChoices, showPath } from "../../../../cli/ui/confirm-text.ts";
import type { Reply } from "../../../../sandbox/confirmation.ts";

const enter = "\r";
const all = listChoices(["once", "session", "rule"]);
const lines = describePrompt({ sessionId: "s1", taskId: "t1", intent: "move", path: "/w/a", destination: "/w/b", size: 12, verdict: { decision: "confirm", ruleId: "ask", tags: ["move"], reason: "rule ask asks" } });

/** Presses one key after the other; returns the replies and the last frame. */
async function play(pressed: readonly string[], choices = all): Promise<{ replies: Reply[]; frame: string }> {
  const replies: Reply[] = [];
  const { stdin, lastFrame, unmount } = render(<Confirm lines={lines} choices={choices} useColor={false} onReply={(reply) => replies.push(reply)} />);
  // Keys are read from the first effect on.
  await sleep(20);
  for (const key of pressed) {
    stdin.write(key);
    await sleep(20);
  }
  const frame = lastFrame() ?? "";
  unmount();
  return { replies, frame };
}

describe("the question", () => {
  test("shows everything that decides, and every yes that is offered", async () => {
    const { frame } = await play([]);
    for (const part of ['move "/w/a"', 'to "/w/b"', "12 bytes", "asked by ask: rule ask asks", "risks: move", "session s1, task t1", "[y]es and Enter: allow it this once", "[s]ession and Enter", "[a]lways and Enter", "Enter alone, or anything else: no"]) expect(frame).toContain(part);
  });

  test.each([
    { name: "yes", pressed: ["y", enter], reply: "once" },
    { name: "a whole word", pressed: ["y", "e", "s", enter], reply: "once" },
    { name: "keys that arrive at once", pressed: [`s${enter}`], reply: "session" },
    { name: "always", pressed: ["always", enter], reply: "rule" },
    { name: "Enter alone", pressed: [enter], reply: "deny" },
    { name: "no", pressed: ["n", enter], reply: "deny" },
    { name: "two words", pressed: ["yes yes", enter], reply: "deny" },
    { name: "Escape", pressed: ["\u001b"], reply: "deny" },
    { name: "Ctrl-C", pressed: ["\u0003"], reply: "deny" },
    { name: "a key more than the word", pressed: ["yy", enter], reply: "deny" },
  ])("is answered by $name", async ({ pressed, reply }) => {
    expect((await play(pressed)).replies).toEqual([reply]);
  });

  test("is not answered by a word alone", async () => {
    const { replies, frame } = await play(["yes"]);
    expect(replies).toEqual([]);
    expect(frame).toContain("❯ yes▏");
  });

  test("knows no word that is not offered", async () => {
    expect((await play(["a", enter], listChoices(["once", "session"]))).replies).toEqual(["deny"]);
  });

  test("is answered once: what comes after Enter changes nothing", () => {
    const key = { return: false, escape: false, ctrl: false, meta: false, backspace: false, delete: false };
    expect(applyConfirm(beginConfirm, { input: "\ry\r", key }, all).reply).toBe("deny");
  });

  test("takes no yes but its words, whatever is typed", () => {
    const key = { return: false, escape: false, ctrl: false, meta: false, backspace: false, delete: false };
    expect(() => fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 12 }), (text) => {
        const { reply } = applyConfirm(applyConfirm(beginConfirm, { input: text, key }, all), { input: "", key: { ...key, return: true } }, all);
        return reply === "deny" || /^\s*(?:y|yes|s|session|a|always)\s*(?:[\r\n]|$)/i.test(text);
      }),
      { numRuns: 3000 },
    )).not.toThrow();
  });
});

describe("a path", () => {
  test.each([
    { name: "shows line ends and what a terminal would obey as text", path: "/w/a\n  risks: none\u001b[2J\u202e", shown: String.raw`"/w/a\n  risks: none\u001b[2J\u202e"` },
    { name: "shows a blank at its end", path: "/w/a ", shown: '"/w/a "' },
  ])("$name", ({ path, shown }) => {
    expect(showPath(path)).toBe(shown);
  });

  test("that would fill the screen shows both of its ends", () => {
    expect(showPath(`/begin/${"x".repeat(4000)}/end`)).toMatch(/^"\/begin\/x+" … 3411 characters … "x+\/end"$/);
  });

  test("of a rule cannot end a line either", () => {
    const [, asked] = describePrompt({ sessionId: "s", taskId: "t", intent: "read", path: "/w", verdict: { decision: "confirm", ruleId: "a\nb", tags: [], reason: "c\rd" } });
    expect(asked).toBe(String.raw`asked by a\nb: c\rd`);
  });
});
