import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeEngine, type Outcome } from "./fake-engine.ts";

const hasScript = spawnSync("script", ["--version"], { stdio: "ignore" }).status === 0;
let engine: FakeEngine;

beforeEach(() => {
  engine = new FakeEngine();
  mkdirSync(path.join(engine.project, ".agentbox"));
  writeFileSync(path.join(engine.project, ".agentbox/config.toml"), '[network]\nmode = "full"\n');
  // Where the question is passed, the start ends here.
  engine.answer("info", "exit 1");
});

afterEach(() => engine.remove());

/** Starts on a terminal and answers the question, if it comes. */
async function start(argv: readonly string[], answer: string): Promise<Outcome> {
  const { child, outcome } = engine.startOnTerminal(argv);
  let seen = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
    if (seen.includes("[y/N]") && answer !== "") child.stdin?.write(answer);
    if (seen.includes("[y/N]")) answer = "";
  });
  // A terminal echoes what was typed before the program reads, too.
  await sleep(0);
  return await outcome;
}

describe.skipIf(!hasScript)("a start in a project with a file that widens, on a terminal", () => {
  test.each([
    { name: "a plain Enter", answer: "\r" },
    { name: "a no", answer: "n\r" },
    { name: "a word that only begins with y", answer: "yonder\r" },
    { name: "Ctrl-D", answer: "\u0004" },
  ])("shows the difference, and starts nothing after $name", async ({ answer }) => {
    const outcome = await start(["run", "--", "true"], answer);
    expect(outcome.stdout).toMatch(/\+mode = "full"[^]*It widens[^]*Do you trust it\? \[y\/N\][^]*did not agree/);
    expect(outcome.code).toBe(78);
    expect(engine.calls()).toEqual([]);
  });

  test("goes on after a yes, and does not ask again", async () => {
    expect((await start(["run", "--", "true"], "y\r")).stdout).toMatch(/\[y\/N\]/);
    const again = await start(["run", "--", "true"], "");
    expect(again.stdout).not.toMatch(/\[y\/N\]/);
    expect(again.code).toBe(69);
  });

  test("is refused without a question in a batch", async () => {
    const outcome = await start(["run", "--batch", "--", "true"], "y\r");
    expect(outcome.stdout).not.toMatch(/\[y\/N\]/);
    expect(outcome.stdout).toMatch(/agentbox policy trust/);
    expect(outcome.code).toBe(78);
  });
});
