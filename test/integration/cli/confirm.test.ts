import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { waitingSchema } from "../../../cli/commands/confirm.ts";

const PROGRAM = path.join(import.meta.dirname, "../../../build/cli.mjs");
const ASKER = path.join(import.meta.dirname, "../../fixtures/confirm-asker.ts");
const hasScript = spawnSync("script", ["--version"], { stdio: "ignore" }).status === 0;

type Outcome = { code: number | null; text: string };
type Asker = { child: ChildProcess; answer: Promise<unknown> };

let home: string;
let askers: Asker[];

beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "agentbox confirm "));
  mkdirSync(path.join(home, ".agentbox"), { mode: 0o700 });
  askers = [];
});

afterEach(async () => {
  for (const { child } of askers) child.kill("SIGKILL");
  await Promise.all(askers.map(async ({ child }) => (child.exitCode === null && child.signalCode === null ? await once(child, "close") : undefined)));
  rmSync(home, { recursive: true, force: true });
});

const queueOf = (session: string): string => path.join(home, ".agentbox/guard", session, "confirm");

/** A session without a terminal that asks about one operation. */
async function ask({ session = "s1", id = "p1", about = "/srv/work/a", rule = "invariant:delete" } = {}): Promise<Asker> {
  const child = spawn(process.execPath, [ASKER, path.join(home, ".agentbox"), session, id, about, rule], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const answer = once(child, "close").then((): unknown => (text === "" ? undefined : JSON.parse(text)));
  const asker = { child, answer };
  askers.push(asker);
  while (!existsSync(path.join(queueOf(session), `${id}.json`))) await sleep(10);
  return asker;
}

/** Runs `agentbox` in a session of its own, so that no terminal of the tests is its; `input` goes to stdin. */
async function run(argv: readonly string[], input = ""): Promise<Outcome> {
  const child = spawn(process.execPath, [PROGRAM, ...argv], { detached: true, env: { PATH: process.env["PATH"], HOME: home }, cwd: home, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(input);
  return await collect(child);
}

/** Runs `agentbox` on a terminal, and types when the question is there. */
async function runOnTerminal(argv: readonly string[], typed: string, { ahead = "", before }: { ahead?: string; before?: () => void } = {}): Promise<Outcome> {
  const command = [process.execPath, PROGRAM, ...argv].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { env: { PATH: process.env["PATH"], HOME: home, TERM: "xterm" }, cwd: home, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.write(ahead);
  let seen = "";
  let left = typed;
  child.stdout.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
    if (left === "" || !seen.includes("anything else: no")) return;
    before?.();
    child.stdin.write(left);
    left = "";
  });
  return await collect(child);
}

async function collect(child: ChildProcess): Promise<Outcome> {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(child, "close");
  return { code: child.exitCode, text };
}

describe("confirm list", () => {
  test("shows what waits, and leaves it waiting", async () => {
    await ask({ about: "/srv/work/a\n\u202eb" });
    const { code, text } = await run(["confirm", "list"]);
    expect(code).toBe(0);
    expect(text).toMatch(/^p1 {2}session s1 {2}delete "\/srv\/work\/a\\n\\u202eb" {2}invariant:delete {2}\d+ s left\n$/);
    expect((await run(["confirm", "list"])).text).toMatch(/^p1 .* s left\n$/);
  });

  test("says that nothing waits", async () => {
    expect(await run(["confirm", "list"])).toEqual({ code: 0, text: "Nothing waits for an answer.\n" });
  });

  test("tells programs, without the nonce", async () => {
    await ask();
    const { text } = await run(["confirm", "list", "--json"]);
    expect(waitingSchema.parse(JSON.parse(text)).prompts).toMatchObject([{ id: "p1", sessionId: "s1", intent: "delete", scopes: ["once", "session"], stale: false }]);
    expect(text).not.toMatch(/nonce/);
  });

  test("shows what a killed session asked as stale, once", async () => {
    const { child, answer } = await ask();
    child.kill("SIGKILL");
    await answer;
    expect((await run(["confirm", "list"])).text).toMatch(/^p1 .*stale: the session is gone\n$/);
    expect((await run(["confirm", "list"])).text).toBe("Nothing waits for an answer.\n");
  });
});

describe("confirm deny", () => {
  test("answers without a terminal", async () => {
    const { answer } = await ask();
    expect(await run(["confirm", "deny", "p1"])).toEqual({ code: 0, text: "p1 denied.\n" });
    expect(await answer).toEqual({ answer: "denied", scope: "once", by: "queue" });
  });

  test("takes the beginning of an id, and the session where two are alike", async () => {
    const [one, two] = [await ask({ id: "alike" }), await ask({ session: "s2", id: "alike" })];
    const both = await run(["confirm", "deny", "al"]);
    expect(both).toMatchObject({ code: 64, text: expect.stringMatching(/"al" may be s1\/alike or s2\/alike; .*fix: write SESSION\/ID/) });
    expect((await run(["confirm", "deny", "s2/alike"])).code).toBe(0);
    expect(await two.answer).toMatchObject({ answer: "denied" });
    expect((await run(["confirm", "deny", "al"])).code).toBe(0);
    expect(await one.answer).toMatchObject({ answer: "denied" });
  });

  test.each([
    { name: "an unknown id", id: "nothing" },
    { name: "an id that would lead elsewhere", id: "../../s1/confirm/p1" },
    { name: "no id", id: "" },
  ])("refuses $name", async ({ id }) => {
    await ask();
    expect(await run(["confirm", "deny", id])).toMatchObject({ code: 64, text: expect.stringMatching(/waits; expected the id of a prompt/) });
  });

  test("refuses what a killed session asked", async () => {
    const { child, answer } = await ask();
    child.kill("SIGKILL");
    await answer;
    expect(await run(["confirm", "deny", "p1"])).toMatchObject({ code: 64, text: expect.stringMatching(/"p1" is stale: session s1, which asked, is gone/) });
  });
});

describe("confirm approve without a terminal", () => {
  test("is refused, whatever stdin says, and the prompt waits on", async () => {
    await ask();
    const { code, text } = await run(["confirm", "approve", "p1"], "y\nyes\n");
    expect(code).toBe(64);
    expect(text).toMatch(/a yes is asked for on a terminal, and there is none/);
    expect(readdirSync(queueOf("s1")).filter((name) => name.startsWith("p1"))).toEqual(["p1.json"]);
  });
});

describe.skipIf(!hasScript)("confirm approve on a terminal", () => {
  test.each([
    { name: "y and Enter", typed: "y\r" },
    { name: "yes and Enter, in capitals", typed: "YES\r" },
    { name: "a word that was corrected", typed: "x\u007fy\r" },
  ])("shows the operation and approves it after $name", async ({ typed }) => {
    const { answer } = await ask({ about: "/srv/work/\u001b]0;x\u0007\u202ea" });
    const outcome = await runOnTerminal(["confirm", "approve", "p1"], typed);
    expect(outcome.text).toContain(String.raw`delete "/srv/work/\u001b]0;x\u0007\u202ea"`);
    expect(outcome.text).toMatch(/asked by invariant:delete: why[^]*risks: delete[^]*session s1, task t1[^]*allow it this once[^]*p1 approved\./);
    expect(outcome.code).toBe(0);
    expect(await answer).toEqual({ answer: "approved", scope: "once", by: "queue" });
  });

  test.each([
    { name: "Enter alone", typed: "\r" },
    { name: "n", typed: "n\r" },
    { name: "a word that only begins with y", typed: "yonder\r" },
    { name: "the word of another question", typed: "always\r" },
    { name: "Ctrl-D", typed: "\u0004" },
    { name: "Ctrl-C", typed: "\u0003" },
    { name: "Escape", typed: "\u001b" },
    { name: "Ctrl-D after y", typed: "y\u0004" },
    { name: "a pasted word with a line end in front", typed: "\ry\r" },
  ])("approves nothing after $name, and the prompt waits on", async ({ typed }) => {
    await ask();
    const outcome = await runOnTerminal(["confirm", "approve", "p1"], typed);
    expect(outcome.text).toMatch(/nothing was approved; p1 waits on/);
    expect(outcome.code).toBe(1);
    expect(readdirSync(queueOf("s1")).filter((name) => name.startsWith("p1"))).toEqual(["p1.json"]);
  });

  test("takes nothing that was typed before the question was there", async () => {
    await ask();
    const outcome = await runOnTerminal(["confirm", "approve", "p1"], "\r", { ahead: "y\r" });
    expect(outcome.text).toMatch(/The file guard asks[^]*nothing was approved; p1 waits on/);
    expect(outcome.code).toBe(1);
  });

  test.each([
    { name: "for the session", option: "--session", rule: "invariant:delete", said: /for whatever this rule asks again in this session/, scope: "session" },
    { name: "for good", option: "--always", rule: "ask", said: /for this rule from now on/, scope: "rule" },
  ])("approves $name where that is asked for", async ({ option, rule, said, scope }) => {
    const { answer } = await ask({ rule });
    const outcome = await runOnTerminal(["confirm", "approve", "p1", option], "y\r");
    expect(outcome.text).toMatch(said);
    expect(await answer).toEqual({ answer: "approved", scope, by: "queue" });
  });

  test("does not ask again about a rule that was approved for good", async () => {
    const first = await ask({ rule: "ask" });
    await runOnTerminal(["confirm", "approve", "p1", "--always"], "y\r");
    await first.answer;
    const child = spawn(process.execPath, [ASKER, path.join(home, ".agentbox"), "s2", "p2", "/srv/work/b", "ask"], { stdio: ["ignore", "pipe", "inherit"] });
    expect(JSON.parse((await collect(child)).text)).toEqual({ answer: "approved", scope: "rule", by: "queue" });
  });

  test("asks nothing about a yes for good to what the guard asks by itself", async () => {
    await ask();
    const outcome = await runOnTerminal(["confirm", "approve", "p1", "--always"], "y\r");
    expect(outcome.text).toMatch(/--always is no answer to what invariant:delete asks/);
    expect(outcome.code).toBe(64);
  });

  test("approves nothing that does not wait any more when the yes comes", async () => {
    const { child } = await ask();
    const outcome = await runOnTerminal(["confirm", "approve", "p1"], "y\r", {
      before: () => {
        child.kill("SIGKILL");
        rmSync(path.join(queueOf("s1"), "p1.json"), { force: true });
      },
    });
    expect(outcome.text).toMatch(/p1 does not wait any more/);
    expect(outcome.code).toBe(1);
  });
});
