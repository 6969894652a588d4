import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderOptions } from "../../../scripts/build.ts";

const hasScript = spawnSync("script", ["--version"], { stdio: "ignore" }).status === 0;
const directory = mkdtempSync(path.join(tmpdir(), "agentbox-confirm-"));
const program = path.join(directory, "confirm-terminal.mjs");

beforeAll(async () => {
  await build(renderOptions({ entry: "test/fixtures/confirm-terminal.ts", output: program }));
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Starts the program on a terminal; each text of `typed` is typed when its question is there. */
async function ask(timeoutMs: number, typed: Readonly<Record<string, string>>): Promise<unknown> {
  const child = spawn("script", ["--quiet", "--return", "--command", `'${process.execPath}' '${program}' ${timeoutMs}`, "/dev/null"], { env: { PATH: process.env["PATH"], TERM: "xterm" }, stdio: ["pipe", "pipe", "inherit"] });
  const left = new Map(Object.entries(typed));
  return await readAnswers(child, (seen) => {
    for (const [question, text] of left) {
      if (!seen.includes(`read "/srv/work/${question}"`)) continue;
      left.delete(question);
      child.stdin.write(text);
    }
  });
}

async function readAnswers(child: ChildProcess, see: (seen: string) => void): Promise<unknown> {
  let seen = "";
  child.stdout?.on("data", (chunk: Buffer) => see((seen += chunk.toString())));
  await once(child, "close");
  return JSON.parse(/^\[\{.*\}\]/m.exec(seen)?.[0] ?? "null");
}

describe.skipIf(!hasScript)("a session with a terminal", () => {
  const yes = { answer: "approved", scope: "once", by: "terminal" };
  const no = { answer: "denied", scope: "once", by: "terminal" };

  test.each([
    { name: "asks one question after the other, and an answer is that to its own", typed: { one: "y\r", two: "\r" }, expected: [yes, no] },
    { name: "goes on after a no", typed: { one: "\u0004", two: "s\r" }, expected: [no, { ...yes, scope: "session" }] },
    { name: "takes a yes for one question only", typed: { one: "y\ry\r", two: "\r" }, expected: [yes, no] },
    { name: "knows no yes for good where there is none", typed: { one: "a\r", two: "always\r" }, expected: [no, no] },
  ])("$name", async ({ typed, expected }) => {
    expect(await ask(60_000, typed)).toEqual(expected);
  });

  test("ends when nobody answers, with the terminal as it was", async () => {
    const late = { answer: "timed-out", scope: "once", by: "terminal" };
    expect(await ask(1500, {})).toEqual([late, late]);
  });
});

test("a session without a terminal asks nobody there", async () => {
  const child = spawn(process.execPath, [program, "60000"], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  const nobody = { answer: "unavailable", scope: "once", by: "nobody" };
  expect(await readAnswers(child, () => undefined)).toEqual([nobody, nobody]);
});
