import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { answerPrompt, readInbox, type WaitingPrompt } from "../../../sandbox/confirmation-inbox.ts";
import { makePrompt, QueueHome, rightAnswer, writePrivate } from "./queue-home.ts";

let box: QueueHome;

beforeEach(() => {
  box = new QueueHome();
});

afterEach(() => box.remove());

const answerFile = (): string => box.place("s1", "confirm", "p1.answer");

describe("a prompt in the queue", () => {
  test("lies in private files of private directories, and is gone when it is answered", async () => {
    const modes: string[] = [];
    const answer = await box.askAnd((waiting) => {
      for (const names of [[], ["s1"], ["s1", "confirm"], ["s1", "confirm", "p1.json"], ["s1", "confirm", ".lock"]]) modes.push((lstatSync(box.place(...names)).mode & 0o7777).toString(8));
      expect(waiting.question).toMatchObject({ id: "p1", sessionId: "s1", path: "/srv/work/a", intent: "delete", scopes: ["once", "session"] });
      expect(waiting.stale).toBe(false);
      expect(answerPrompt(box.home, waiting, "once")).toBe("done");
    });
    expect(modes).toEqual(["700", "700", "700", "600", "600"]);
    expect(answer).toEqual({ answer: "approved", scope: "once", by: "queue" });
    expect(readdirSync(box.place("s1", "confirm")).filter((name) => !name.startsWith(".lock"))).toEqual([]);
  });

  test.each([
    { name: "a yes for the session is one", reply: "session" as const, expected: { answer: "approved", scope: "session", by: "queue" } },
    { name: "a no is one", reply: "deny" as const, expected: { answer: "denied", scope: "once", by: "queue" } },
    { name: "a yes for good is no answer to the guard's own question", reply: "rule" as const, expected: { answer: "denied", scope: "once", by: "queue" } },
  ])("$name", async ({ reply, expected }) => {
    expect(await box.askAnd((waiting) => void answerPrompt(box.home, waiting, reply))).toEqual(expected);
  });

  test("that nobody answers in time is a no, and its file goes", async () => {
    const broker = await box.makeBroker("s1", 300);
    const answer = broker.confirm(makePrompt());
    const waiting = await box.awaitPrompt();
    expect(await answer).toEqual({ answer: "timed-out", scope: "once", by: "queue" });
    while (existsSync(box.place("s1", "confirm", "p1.json"))) await sleep(10);
    expect(answerPrompt(box.home, waiting, "once")).toBe("gone");
  });

  test("is shown and answered, however long and odd its paths and its rule are", async () => {
    const broker = await box.makeBroker();
    const odd = `/srv/${"\u0001".repeat(4000)}`;
    const answer = broker.confirm(makePrompt({ root: odd, path: odd, destination: odd, verdict: { decision: "confirm", ruleId: "ask", tags: [], reason: "\\u0001".repeat(4096) } }));
    const waiting = await box.awaitPrompt();
    expect(waiting.question.path).toBe(odd);
    answerPrompt(box.home, waiting, "once");
    expect(await answer).toMatchObject({ answer: "approved" });
  });

  test("keeps its first answer", async () => {
    const answer = await box.askAnd((waiting) => {
      expect(answerPrompt(box.home, waiting, "deny")).toBe("done");
      expect(answerPrompt(box.home, waiting, "once")).toBe("answered");
    });
    expect(answer).toMatchObject({ answer: "denied" });
  });
});

// The first row is the control of all others: the same bytes in the right file are a yes.
describe("in the place of an answer", () => {
  const rows: readonly { name: string; act: (waiting: WaitingPrompt) => void; expected?: string }[] = [
    { name: "the very answer is a yes", act: (waiting) => writePrivate(answerFile(), JSON.stringify(rightAnswer(waiting))), expected: "approved" },
    { name: "a link to it is a no", act: (waiting) => { writePrivate(path.join(box.top, "x"), JSON.stringify(rightAnswer(waiting))); symlinkSync(path.join(box.top, "x"), answerFile()); } },
    { name: "a FIFO is a no, and nobody waits for it", act: () => void spawnSync("mkfifo", ["-m", "600", answerFile()]) },
    { name: "a directory is a no", act: () => mkdirSync(answerFile(), { mode: 0o700 }) },
    { name: "a file that others may write is a no", act: (waiting) => { writePrivate(`${answerFile()}.x`, JSON.stringify(rightAnswer(waiting))); chmodSync(`${answerFile()}.x`, 0o622); renameSync(`${answerFile()}.x`, answerFile()); } },
    { name: "half an answer is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify(rightAnswer(waiting)).slice(0, -1)) },
    { name: "an empty file is a no", act: () => writePrivate(answerFile(), "") },
    { name: "a huge file is a no", act: (waiting) => writePrivate(answerFile(), `${JSON.stringify(rightAnswer(waiting))}${" ".repeat(1 << 20)}`) },
    { name: "another nonce is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify({ ...rightAnswer(waiting), nonce: "0".repeat(32) })) },
    { name: "an answer to what the question was changed to is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify({ ...rightAnswer(waiting), question: "0".repeat(64) })) },
    { name: "another id is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify({ ...rightAnswer(waiting), id: "p2" })) },
    { name: "one key more is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify({ ...rightAnswer(waiting), force: true })) },
    { name: "true is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify({ ...rightAnswer(waiting), reply: true })) },
    { name: "yes is a no", act: (waiting) => writePrivate(answerFile(), JSON.stringify({ ...rightAnswer(waiting), reply: "yes" })) },
    { name: "a bare yes is a no", act: () => writePrivate(answerFile(), '"once"') },
  ];
  test.each(rows)("$name", async ({ act, expected = "denied" }) => {
    expect(await box.askAnd(act)).toMatchObject({ answer: expected, scope: "once" });
  });

  test.skipIf(process.getuid?.() !== 0)("a file of another user is a no", async () => {
    const answer = await box.askAnd((waiting) => {
      writePrivate(`${answerFile()}.x`, JSON.stringify(rightAnswer(waiting)));
      chownSync(`${answerFile()}.x`, 12_345, 12_345);
      renameSync(`${answerFile()}.x`, answerFile());
    });
    expect(answer).toMatchObject({ answer: "denied" });
  });

  test("the answer to an earlier prompt of the same id is a no", async () => {
    const broker = await box.makeBroker();
    let kept = "";
    const first = broker.confirm(makePrompt());
    const earlier = await box.awaitPrompt();
    kept = JSON.stringify(rightAnswer(earlier));
    answerPrompt(box.home, earlier, "once");
    expect(await first).toMatchObject({ answer: "approved" });
    const second = broker.confirm(makePrompt());
    await box.awaitPrompt();
    writePrivate(answerFile(), kept);
    expect(await second).toMatchObject({ answer: "denied" });
  });

  test("an answer that waits for its prompt is nobody's", async () => {
    const broker = await box.makeBroker();
    writePrivate(answerFile(), '{"v":1}');
    const answer = broker.confirm(makePrompt());
    answerPrompt(box.home, await box.awaitPrompt(), "once");
    expect(await answer).toMatchObject({ answer: "approved" });
  });
});

const questionFile = (): string => box.place("s1", "confirm", "p1.json");

describe("a question", () => {
  test.each([
    { name: "that was exchanged is shown as it is, and answered by nobody", act: () => writePrivate(questionFile(), readFileSync(questionFile(), "utf8").replace("/srv/work/a", "/srv/work/b")) },
    { name: "that was taken away is a no", act: () => rmSync(questionFile()) },
  ])("$name", async ({ act }) => {
    const answer = await box.askAnd((waiting) => {
      act();
      expect(answerPrompt(box.home, waiting, "once")).toBe("gone");
    });
    expect(answer).toMatchObject({ answer: "denied" });
  });

  test("of which the human saw a changed copy is a no, although it was put back", async () => {
    const broker = await box.makeBroker();
    const answer = broker.confirm(makePrompt());
    const { question } = await box.awaitPrompt();
    const real = readFileSync(questionFile(), "utf8");
    writePrivate(`${questionFile()}.x`, real.replace("/srv/work/a", "/srv/work/harmless"));
    renameSync(`${questionFile()}.x`, questionFile());
    const shown = readInbox(box.home).prompts[0];
    if (shown?.question.path === "/srv/work/harmless") writePrivate(answerFile(), JSON.stringify(rightAnswer(shown)));
    expect(shown?.question.nonce).toBe(question.nonce);
    expect(await answer).toMatchObject({ answer: "denied" });
  });

  test("whose id would lead out of the directory is a no, and writes nothing", async () => {
    const broker = await box.makeBroker();
    expect(await broker.confirm(makePrompt({ id: "../../escape" }))).toMatchObject({ answer: "denied" });
    expect(readdirSync(box.place("s1"))).toEqual(["confirm"]);
    expect(readdirSync(box.place())).toEqual(["s1"]);
  });

  test("whose id is taken is a no, and the first one waits on", async () => {
    const broker = await box.makeBroker();
    const first = broker.confirm(makePrompt());
    const waiting = await box.awaitPrompt();
    expect(await broker.confirm(makePrompt({ path: "/srv/work/b" }))).toMatchObject({ answer: "denied" });
    answerPrompt(box.home, waiting, "once");
    expect(await first).toMatchObject({ answer: "approved" });
  });

  test.each([
    { name: "that is no question", content: "{}" },
    { name: "of another session", content: undefined },
  ])("$name is not shown", async ({ content }) => {
    const broker = await box.makeBroker();
    const answer = broker.confirm(makePrompt());
    await box.awaitPrompt();
    const forged = content ?? readFileSync(questionFile(), "utf8").replaceAll('"p1"', '"p2"').replace('"s1"', '"s2"');
    writePrivate(box.place("s1", "confirm", "p2.json"), forged);
    expect(readInbox(box.home).prompts.map(({ question }) => question.id)).toEqual(["p1"]);
    rmSync(questionFile());
    await answer;
  });
});
