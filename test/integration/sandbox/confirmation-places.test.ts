import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../../policy/errors.ts";
import { AlwaysAnswers } from "../../../sandbox/confirmation-always.ts";
import { answerPrompt, readInbox, removeStale } from "../../../sandbox/confirmation-inbox.ts";
import { makePrompt, QueueHome, rightAnswer, writePrivate } from "./queue-home.ts";

const INBOX = path.join(import.meta.dirname, "../../../sandbox/confirmation-inbox.ts");
const ASKER = path.join(import.meta.dirname, "../../fixtures/confirm-asker.ts");

let box: QueueHome;

beforeEach(() => {
  box = new QueueHome();
});

afterEach(() => box.remove());

describe("a queue's directory is refused", () => {
  test.each([
    { name: "that is a link", act: () => { mkdirSync(path.join(box.top, "x"), { mode: 0o700 }); mkdirSync(box.place("s1"), { recursive: true, mode: 0o700 }); symlinkSync(path.join(box.top, "x"), box.place("s1", "confirm")); }, said: /is a link, or no directory/ },
    { name: "whose parent is a link", act: () => { mkdirSync(path.join(box.top, "x"), { mode: 0o700 }); symlinkSync(path.join(box.top, "x"), box.place()); }, said: /is a link, or no directory/ },
    { name: "that is a file", act: () => { mkdirSync(box.place("s1"), { recursive: true, mode: 0o700 }); writePrivate(box.place("s1", "confirm"), ""); }, said: /is a link, or no directory/ },
    { name: "that others may read", act: () => { mkdirSync(box.place("s1", "confirm"), { recursive: true, mode: 0o700 }); chmodSync(box.place("s1", "confirm"), 0o750); }, said: /may be used by other users/ },
    { name: "whose parent others may enter", act: () => { mkdirSync(box.place(), { mode: 0o700 }); chmodSync(box.place(), 0o711); }, said: /may be used by other users/ },
    { name: "below a home that others may write", act: () => chmodSync(box.home, 0o777), said: /may be used by other users/ },
    { name: "whose lock is no lock", act: () => { mkdirSync(box.place("s1", "confirm"), { recursive: true, mode: 0o700 }); writePrivate(box.place("s1", "confirm", ".lock"), "x".repeat(2000)); }, said: /the lock cannot be taken/ },
  ])("$name", async ({ act, said }) => {
    act();
    await expect(box.openQueue()).rejects.toThrow(ConfigError);
    await expect(box.openQueue()).rejects.toThrow(said);
  });

  test.skipIf(process.getuid?.() !== 0)("that belongs to another user", async () => {
    mkdirSync(box.place("s1", "confirm"), { recursive: true, mode: 0o700 });
    chownSync(box.place("s1", "confirm"), 12_345, 12_345);
    await expect(box.openQueue()).rejects.toThrow(/belongs to uid 12345/);
    expect(readInbox(box.home)).toMatchObject({ prompts: [], problems: [expect.stringMatching(/belongs to uid 12345/)] });
  });

  test("and no other: one that is missing is made, and one that is there is taken", async () => {
    await box.openQueue();
    expect(readInbox(box.home)).toEqual({ prompts: [], problems: [] });
    mkdirSync(box.place("s2", "confirm"), { recursive: true, mode: 0o700 });
    await expect(box.openQueue("s2")).resolves.toMatchObject({ kind: "queue" });
  });

  test("without hiding the prompts of other sessions", async () => {
    const broker = await box.makeBroker();
    const answer = broker.confirm(makePrompt());
    await box.awaitPrompt();
    mkdirSync(box.place("s0", "confirm"), { recursive: true, mode: 0o700 });
    chmodSync(box.place("s0", "confirm"), 0o777);
    const { prompts, problems } = readInbox(box.home);
    expect(problems).toHaveLength(1);
    expect(prompts).toHaveLength(1);
    for (const waiting of prompts) answerPrompt(box.home, waiting, "deny");
    await answer;
  });
});

describe("two brokers", () => {
  test("of two sessions each hear their own answer, although the ids are the same", async () => {
    const [one, two] = [await box.makeBroker("s1"), await box.makeBroker("s2")];
    const answers = [one.confirm(makePrompt()), two.confirm(makePrompt({ sessionId: "s2" }))];
    const prompts = await box.awaitPrompts(2);
    const second = prompts.find(({ question }) => question.sessionId === "s2");
    const first = prompts.find(({ question }) => question.sessionId === "s1");
    if (first === undefined || second === undefined) throw new Error("a prompt is missing");
    // The answer of one in the place of the other's.
    writePrivate(box.place("s2", "confirm", "p1.answer"), JSON.stringify(rightAnswer(first)));
    expect(await answers[1]).toMatchObject({ answer: "denied" });
    answerPrompt(box.home, first, "once");
    expect(await answers[0]).toMatchObject({ answer: "approved" });
  });

  test("do not share a session", async () => {
    await box.openQueue();
    await expect(box.openQueue()).rejects.toThrow(/another process asks for this session/);
  });
});

async function startAsker(): Promise<ChildProcess> {
  const child = spawn(process.execPath, [ASKER, box.home, "s1", "p1", "/srv/work/a", "invariant:delete"], { stdio: ["ignore", "pipe", "inherit"] });
  await box.awaitPrompt();
  return child;
}

/** What another process thinks of the prompts. */
function seeStale(): unknown {
  const script = `import { readInbox } from ${JSON.stringify(INBOX)}; console.log(JSON.stringify(readInbox(process.argv[1]).prompts.map(({ stale }) => stale)))`;
  return JSON.parse(spawnSync(process.execPath, ["--input-type=module", "--eval", script, box.home], { encoding: "utf8" }).stdout);
}

test("a process that looks at its own queue does not lose it", async () => {
  const broker = await box.makeBroker();
  const answer = broker.confirm(makePrompt());
  const waiting = await box.awaitPrompt();
  expect([waiting.stale, ...readInbox(box.home).prompts.map(({ stale }) => stale)]).toEqual([false, false]);
  expect(seeStale()).toEqual([false]);
  answerPrompt(box.home, waiting, "once");
  expect(await answer).toMatchObject({ answer: "approved" });
});

describe("a process that is killed while it asks", () => {
  test("leaves a prompt that is told to be stale, and that is removed when that is asked for", async () => {
    const child = await startAsker();
    expect((await box.awaitPrompt()).stale).toBe(false);
    removeStale(box.home, readInbox(box.home).prompts);
    expect(readInbox(box.home).prompts).toHaveLength(1);
    child.kill("SIGKILL");
    await once(child, "close");
    const { prompts } = readInbox(box.home);
    expect(prompts).toMatchObject([{ stale: true }]);
    removeStale(box.home, prompts);
    expect(readInbox(box.home).prompts).toEqual([]);
  });

  test("leaves nothing that the next process of the session would ask or hear", async () => {
    const child = await startAsker();
    const stale = await box.awaitPrompt();
    child.kill("SIGKILL");
    await once(child, "close");
    answerPrompt(box.home, stale, "once");
    const broker = await box.makeBroker();
    expect(readInbox(box.home).prompts).toEqual([]);
    const answer = broker.confirm(makePrompt());
    const fresh = await box.awaitPrompt();
    expect(fresh.question.nonce).not.toBe(stale.question.nonce);
    answerPrompt(box.home, fresh, "deny");
    expect(await answer).toMatchObject({ answer: "denied" });
  });
});

describe("yeses for good", () => {
  const fingerprint = "a".repeat(64);
  const file = (): string => box.place(".always", `${fingerprint}.json`);
  const add = (): boolean => new AlwaysAnswers(box.home).add({ ruleId: "ask", fingerprint, by: "queue" });

  test("are kept in private files, one each, and found by the next process", () => {
    expect(add()).toBe(true);
    expect(add()).toBe(true);
    expect((lstatSync(file()).mode & 0o777).toString(8)).toBe("600");
    expect(new AlwaysAnswers(box.home).find(fingerprint)).toBe("queue");
    expect(new AlwaysAnswers(box.home).find("b".repeat(64))).toBeUndefined();
  });

  test.each([
    { name: "a link", act: () => { renameSync(file(), `${file()}.x`); symlinkSync(`${file()}.x`, file()); } },
    { name: "a file that others may write", act: () => chmodSync(file(), 0o666) },
    { name: "half a file", act: () => writePrivate(file(), readFileSync(file(), "utf8").slice(0, 40)) },
    { name: "the answer to another rule", act: () => writePrivate(file(), readFileSync(file(), "utf8").replaceAll("a".repeat(64), "b".repeat(64))) },
    { name: "a directory that others may write", act: () => chmodSync(box.place(".always"), 0o777) },
  ])("are not taken from $name", ({ act }) => {
    add();
    act();
    expect(new AlwaysAnswers(box.home).find(fingerprint)).toBeUndefined();
  });

  test("are not given where they cannot be written", () => {
    mkdirSync(box.place(), { mode: 0o700 });
    symlinkSync(box.top, box.place(".always"));
    expect(add()).toBe(false);
  });
});
