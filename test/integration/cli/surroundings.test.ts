import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeEngine } from "./fake-engine.ts";

let engine: FakeEngine;

beforeEach(() => {
  engine = new FakeEngine();
});

afterEach(() => engine.remove());

function stateFiles(): string[] {
  const directory = path.join(engine.home, ".agentbox");
  return existsSync(directory) ? readdirSync(directory) : [];
}

describe("output that nobody reads", () => {
  test("does not end a build in the middle, and leaves nothing of it", async () => {
    engine.answer("image-inspect", '[ -e "$FAKE/built" ] || exit 1');
    engine.answer("build", 'for n in 1 2 3 4 5 6; do echo "Step $n/6 : RUN x"; sleep 0.05; done; : >"$FAKE/built"');
    const outcome = await engine.runShell('agentbox run -- true 2>&1 | head -1; exit "${PIPESTATUS[0]}"');
    expect(outcome.code).toBe(0);
    expect(engine.calls().some((call) => call.startsWith("start "))).toBe(true);
    expect(engine.sessions()).toEqual([]);
    expect(stateFiles()).not.toContain("build.lock");
    expect(stateFiles()).not.toContain("build");
  });

  test("is no failure of a dry run whose reader has seen enough", async () => {
    expect(await engine.runShell('agentbox run --dry-run -- true | head -1; exit "${PIPESTATUS[0]}"')).toMatchObject({ code: 0, stderr: "" });
  });

  test("is told in one line when the disk is full", async () => {
    const outcome = await engine.runShell("agentbox run --dry-run -- true >/dev/full");
    expect(outcome).toMatchObject({ code: 74, stderr: expect.stringMatching(/^agentbox: stdout cannot be written \(ENOSPC\).*\n$/) });
  });
});

test("what a killed build left is replaced by the next one", async () => {
  mkdirSync(path.join(engine.home, ".agentbox/build"), { recursive: true });
  writeFileSync(path.join(engine.home, ".agentbox/build/leftover"), "");
  engine.answer("image-inspect", '[ -e "$FAKE/built" ] || exit 1');
  engine.answer("build", 'for last; do :; done; ls "$last" >"$FAKE/context"; cp "$FAKE/context" "$FAKE/built"; ! grep -q leftover "$FAKE/context" || exit 1');
  expect(await engine.run(["run", "--", "true"])).toMatchObject({ code: 0 });
  expect(stateFiles()).not.toContain("build");
});

describe("a home directory that is none", () => {
  test.each([
    { name: "empty", home: "" },
    { name: "relative", home: "here" },
    { name: "not there", home: "/nonexistent/home" },
  ])("is refused with 78 when it is $name, before anything is written", async ({ home }) => {
    const outcome = await engine.run(["run", "--", "true"], { HOME: home });
    expect(outcome).toMatchObject({ code: 78, stdout: "", stderr: expect.stringContaining(`HOME is ${JSON.stringify(home)}; expected the absolute path`) });
    expect(engine.projectFiles()).toEqual([]);
    expect(engine.calls()).toEqual([]);
  });

  test("does not keep help from being shown", async () => {
    expect(await engine.run(["--help"], { HOME: "" })).toMatchObject({ code: 0, stderr: "" });
    expect(engine.projectFiles()).toEqual([]);
  });
});

test.each(["run -- true", "run --dry-run -- true", "cleanup", "doctor", "--rebuild", "ssh-init"])("~/.agentbox that is a file is refused with 78 by agentbox %s", async (words) => {
  writeFileSync(path.join(engine.home, ".agentbox"), "");
  const outcome = await engine.run(words.split(" "));
  expect(outcome).toMatchObject({ code: 78, stdout: "", stderr: expect.stringMatching(/\.agentbox: agentbox cannot keep its state here \(it is not a directory\)/) });
});

test("a working directory that was deleted is refused with 64", async () => {
  const outcome = await engine.runShell('mkdir gone && cd gone && rmdir ../gone && agentbox run -- true');
  expect(outcome).toMatchObject({ code: 64, stderr: expect.stringContaining("the working directory does not exist any more") });
});
