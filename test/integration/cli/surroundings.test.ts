import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
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

function makeSession(files: Readonly<Record<string, string>>, time: Date): void {
  const directory = path.join(engine.home, ".agentbox/sessions/20260101-000000-abcdef");
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(directory, name), content);
  utimesSync(directory, time, time);
}

/** Makes the engine show one volume, of the project at `project` and of the user who keeps `home`. */
function showVolume(project: string, home: string): void {
  const labels = JSON.stringify({ "agentbox.project": project, "agentbox.home": home });
  engine.answer("volume", `case $2 in ls) echo v1 ;; inspect) printf '%s\\t%s\\n' v1 '${labels}' ;; esac`);
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

describe("a reader of the box's output that has seen enough", () => {
  const running = `echo '{"Status":"running","ExitCode":0,"Error":""}'; exit 0`;

  test.each([
    { name: "dies of it", start: "exec yes", code: 141 },
    { name: "says so and ends with 1", start: "trap '' PIPE; yes 2>/dev/null; exit 1", code: 141 },
    { name: "is killed meanwhile", start: "kill -9 $$", code: 69 },
  ])("ends the box and the command with $code when the engine's client $name", async ({ start, code }) => {
    engine.answer("start", start);
    engine.answer("container-inspect", running);
    const outcome = await engine.runShell('agentbox run -- yes | head -1; exit "${PIPESTATUS[0]}"');
    expect(outcome.code).toBe(code);
    expect(engine.calls().at(-1)).toMatch(/^rm --force --volumes agentbox-/);
    expect(engine.sessions()).toEqual([]);
  });
});

test.each([
  { name: "with the firewall on", argv: ["run", "--dns", "127.0.0.1", "--", "true"], firewall: "1", code: 64 },
  { name: "unless the firewall is off", argv: ["run", "--dns", "127.0.0.1", "--", "true"], firewall: "0", code: 0 },
  { name: "unless --full-network is given", argv: ["run", "--full-network", "--dns", "127.0.0.1", "--", "true"], firewall: "1", code: 0 },
])("a resolver on the box's own loopback is refused $name", async ({ argv, firewall, code }) => {
  expect(await engine.run(argv, { AGENTBOX_FIREWALL: firewall })).toMatchObject({ code });
});

describe("what killed sessions left", () => {
  const old = new Date(Date.now() - 3_600_000);

  test.each([
    { name: "an empty directory", files: {}, time: old, left: 0 },
    { name: "a draft of a record", files: { "session.json.123.new": "{" }, time: old, left: 0 },
    { name: "a record cut short", files: { "session.json": "", "seccomp.json": "{}" }, time: old, left: 0 },
    { name: "a directory that was made just now", files: {}, time: new Date(), left: 1 },
    { name: "the record of a later version", files: { "session.json": '{"version":3}' }, time: old, left: 1 },
    { name: "a log that was kept", files: { "audit.log": "" }, time: old, left: 1 },
  ])("$name: $left of it stays", async ({ files, time, left }) => {
    makeSession(files, time);
    expect(await engine.run(["run", "--", "true"])).toMatchObject({ code: 0 });
    expect(engine.sessions()).toHaveLength(left);
  });

  test("drafts do not keep a session that is closed", async () => {
    engine.answer("create", 'for directory in "$HOME"/.agentbox/sessions/*; do : >"$directory/seccomp.json.1.new"; done');
    expect(await engine.run(["run", "--", "true"])).toMatchObject({ code: 0 });
    expect(engine.sessions()).toEqual([]);
  });
});

describe("cleanup of volumes", () => {
  const rows = [
    { name: "of a project that was deleted beside others is removed, and named", project: "gone", own: true, removed: true },
    { name: "of a project that is there stays", project: "my project", own: true, removed: false },
    { name: "of a project on a disk that is away stays", project: "disk/project", own: true, removed: false },
    { name: "of a project on a disk whose mount point is empty stays", project: "empty/project", own: true, removed: false },
    { name: "of another user stays", project: "gone", own: false, removed: false },
  ];

  test.each(rows)("a volume $name", async ({ project, own, removed }) => {
    const place = path.join(engine.project, "..", project);
    mkdirSync(path.join(engine.project, "../empty"));
    showVolume(place, own ? path.join(engine.home, ".agentbox") : "/home/other/.agentbox");
    const outcome = await engine.run(["cleanup"]);
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(engine.calls().includes("volume rm v1")).toBe(removed);
    expect(outcome.stdout.includes(`  v1 of ${place}`)).toBe(removed);
  });
});

test("a volume is labelled with its project and the user who keeps it", async () => {
  await engine.run(["run", "--", "true"]);
  const created = engine.calls().find((call) => call.startsWith("create "));
  expect(created).toContain(`volume-label=agentbox.project=${engine.project},volume-label=agentbox.home=${engine.home}/.agentbox`);
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

describe.runIf(process.platform === "linux" && process.getuid?.() === 0)("a base image that cannot be made", () => {
  test("is told with the program that failed and its last words", async () => {
    engine.answer("image-inspect", "exit 1");
    const outcome = await engine.run(["run", "--base", "local", "--", "true"]);
    expect(outcome).toMatchObject({ code: 69, stdout: "" });
    expect(outcome.stderr).toMatch(/^agentbox: the base image could not be made here: debootstrap failed \(exit code 1\): I: Retrieving \/ E: there is no archive; expected .*; fix: see to the network/m);
    expect(outcome.stderr).not.toMatch(/^ +at |node:internal|Node\.js v/m);
  });
});
