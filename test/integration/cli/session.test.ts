import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeEngine } from "./fake-engine.ts";

let engine: FakeEngine;

beforeEach(() => {
  engine = new FakeEngine();
});

afterEach(() => engine.remove());

const run = ["run", "--", "true"];

function expectNothingLeft(): void {
  expect(engine.sessions()).toEqual([]);
  expect(engine.projectFiles()).toEqual([]);
}

/** What replaced a mount point is the user's, and all that is left. */
function expectProjectKept(): void {
  expect(engine.sessions()).toEqual([]);
  expect(engine.projectFiles()).toEqual([".vscode"]);
}

describe("a run without a terminal", () => {
  test("writes nothing to stdout but what the command writes, and passes its exit code on", async () => {
    engine.answer("start", "echo from-inside; exit 0");
    engine.answer("container-inspect", `echo '{"Status":"exited","ExitCode":42,"Error":""}'; exit 0`);
    const outcome = await engine.run(run);
    expect(outcome).toMatchObject({ code: 42, stdout: "from-inside\n" });
    expect(outcome.stderr).toMatch(/FIREWALL OFF/);
    expectNothingLeft();
  });

  test.each([125, 126, 127])("does not take the command's own exit code %i for a failure of the engine", async (code) => {
    engine.answer("start", `exit ${code}`);
    engine.answer("container-inspect", `echo '{"Status":"exited","ExitCode":${code},"Error":""}'; exit 0`);
    expect((await engine.run(run)).code).toBe(code);
  });

  test("removes the box by its name, and gives it its labels and its name when it makes it", async () => {
    await engine.run(run);
    const created = engine.calls().find((call) => call.startsWith("create "));
    const name = /--name (\S+)/.exec(created ?? "")?.[1] ?? "";
    expect(created).toContain(`agentbox.session=${name.replace("agentbox-", "")}`);
    expect(engine.calls().at(-1)).toBe(`rm --force --volumes ${name}`);
  });
});

describe("an engine that fails", () => {
  test.each([
    { name: "is not running", verb: "info", shell: "echo 'Cannot connect to the Docker daemon' >&2; exit 1", said: /not running.*fix: start it/ },
    { name: "may not be used", verb: "info", shell: "echo 'permission denied while trying to connect' >&2; exit 1", said: /may not talk to it.*group "docker"/ },
    { name: "does not make the box", verb: "create", shell: "echo 'Error response from daemon: no space left on device' >&2; exit 1", said: /no space left on device; fix: free disk space/ },
    { name: "does not start the box", verb: "container-inspect", shell: `echo '{"Status":"created","ExitCode":128,"Error":"port is already allocated"}'; exit 0`, said: /port is already allocated; fix: choose another port/ },
    { name: "has a broken image", verb: "image-inspect", shell: "exit 1", said: /the image could not be built/ },
  ])("ends with 69 and the remedy when it $name, and leaves nothing", async ({ verb, shell, said }) => {
    if (verb === "image-inspect") engine.answer("build", "echo 'Step 3/9 : RUN false'; echo 'E: it broke' >&2; exit 1");
    engine.answer(verb, shell);
    const outcome = await engine.run(["run", "--engine", "docker", "--base", "x", "--", "true"]);
    expect(outcome.stderr).toMatch(said);
    expect(outcome).toMatchObject({ code: 69, stdout: "" });
    expectNothingLeft();
  });

  test("is not waited for without end when it does not answer", async () => {
    engine.answer("info", "sleep 60");
    const outcome = await engine.run(["run", "--engine", "docker", "--", "true"]);
    expect(outcome.stderr).toMatch(/docker info did not answer within 10 s/);
    expect(outcome.code).toBe(69);
    expectNothingLeft();
  });

  test("keeps the record of a box that it did not remove, and the next start removes it", async () => {
    engine.answer("rm", "exit 1");
    const outcome = await engine.run(run);
    expect(outcome.stderr).toMatch(/could not be removed; the next start/);
    expect(engine.sessions()).toHaveLength(1);
    engine.answer("rm", undefined);
    expect((await engine.run(run)).stderr).toMatch(/removed what a killed session left/);
    expectNothingLeft();
  });
});

describe("a protected file that is replaced", () => {
  const replace = "mkdir new; mv .vscode old; mv new .vscode; rmdir old;";
  const said = /\.vscode" was replaced on the host.*fix: start again/;

  test("while the engine starts the box ends the run with 70, although nothing runs there to be killed yet", async () => {
    // Like an engine's own: no signal to a box that does not run, and a start that fails once the box is removed.
    engine.answer("kill", "echo 'is not running' >&2; exit 1");
    engine.answer("rm", ': >"$FAKE/removed"');
    engine.answer("start", `${replace} for i in $(seq 100); do [ ! -e "$FAKE/removed" ] || exit 1; sleep 0.05; done; echo agent ran; exit 0`);
    const outcome = await engine.run(run);
    expect(outcome).toMatchObject({ code: 70, stdout: "" });
    expect(outcome.stderr).toMatch(said);
    expectProjectKept();
  });

  test("ends the run although the engine refuses the first removal", async () => {
    engine.answer("kill", "exit 1");
    engine.answer("rm", 'if [ ! -e "$FAKE/asked" ]; then : >"$FAKE/asked"; exit 1; fi; : >"$FAKE/removed"');
    engine.answer("start", `${replace} for i in $(seq 100); do [ ! -e "$FAKE/removed" ] || exit 1; sleep 0.05; done; echo agent ran; exit 0`);
    expect(await engine.run(run)).toMatchObject({ code: 70, stdout: "" });
    expectProjectKept();
  });

  test("before the start is found by the plan, and nothing is started", async () => {
    engine.answer("create", replace);
    const outcome = await engine.run(run);
    expect(outcome.code).toBe(70);
    expect(outcome.stderr).toMatch(/\.vscode" was replaced between planning and start/);
    expect(engine.calls().filter((call) => call.startsWith("start"))).toEqual([]);
    expectProjectKept();
  });

  test("on a terminal ends the run before the terminal is handed over", async () => {
    engine.answer("rm", ': >"$FAKE/removed"');
    engine.answer("start", replace);
    engine.answer("wait", 'for i in $(seq 100); do [ ! -e "$FAKE/removed" ] || exit 0; sleep 0.05; done');
    const outcome = await engine.startOnTerminal(run).outcome;
    expectProjectKept();
    expect(outcome.code).toBe(70);
    expect(outcome.stdout).toMatch(said);
    expect(engine.calls().filter((call) => call.startsWith("attach"))).toEqual([]);
  });
});

describe("an interrupted run", () => {
  const steps = [
    { verb: "info", call: "info" },
    { verb: "image-inspect", call: "image inspect" },
    { verb: "create", call: "create" },
    { verb: "start", call: "start" },
  ];
  const signals = [
    { signal: "SIGINT", code: 130 },
    { signal: "SIGTERM", code: 143 },
    { signal: "SIGHUP", code: 129 },
  ] as const;

  test.each(steps.flatMap((step) => signals.map((signal) => ({ ...step, ...signal }))))("leaves nothing after $signal during $verb", async ({ verb, call, signal, code }) => {
    engine.answer(verb, 'sleep 1; [ "$1" != start ] || while [ ! -e "$FAKE/killed" ]; do sleep 0.05; done');
    engine.answer("kill", ': >"$FAKE/killed"');
    const { child, outcome } = engine.start(run);
    await engine.awaitCall(call);
    child.kill(signal);
    expect(await outcome).toMatchObject({ code });
    expectNothingLeft();
  });

  test("passes the signal on to the command in the box", async () => {
    engine.answer("start", 'while [ ! -e "$FAKE/killed" ]; do sleep 0.05; done');
    engine.answer("kill", ': >"$FAKE/killed"');
    const { child, outcome } = engine.start(run);
    await engine.awaitCall("start");
    child.kill("SIGINT");
    await outcome;
    expect(engine.calls().some((call) => call.startsWith("kill --signal SIGINT agentbox-"))).toBe(true);
  });

  test("leaves a record after SIGKILL, by which the next start removes container and mount points", async () => {
    engine.answer("start", "sleep 2");
    const { child, outcome } = engine.start(run);
    await engine.awaitCall("start");
    child.kill("SIGKILL");
    await outcome;
    const [left] = engine.sessions();
    expect(left).toBeDefined();
    engine.answer("start", undefined);
    expect((await engine.run(run)).stderr).toMatch(/removed what a killed session left/);
    expect(engine.calls()).toContain(`rm --force --volumes agentbox-${left}`);
    expectNothingLeft();
  });

  test("does not sweep a session that still runs", async () => {
    engine.answer("start", 'until [ -e "$FAKE/go" ]; do sleep 0.05; done');
    const first = engine.start(run);
    await engine.awaitCall("start");
    const [running] = engine.sessions();
    engine.answer("start", undefined);
    await engine.run(run);
    expect(engine.sessions()).toEqual([running]);
    engine.answer("go", "");
    expect(await first.outcome).toMatchObject({ code: 0 });
    expectNothingLeft();
  });
});

test("a dry run asks the engine and makes nothing", async () => {
  const outcome = await engine.run(["run", "--dry-run", "--dns", "192.0.2.53", "-e", "SECRET=hush", "--", "echo", "a b"], { AGENTBOX_FIREWALL: "1" });
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toMatch(/firewall on, mode allowlist, by name: AGENTBOX_FIREWALL=1[^]*resolvers behind the box's own: 192\.0\.2\.53[^]*api\.anthropic\.com\S* +allowlists\/services\.sh:\d+[^]*critical: \S*api\.anthropic\.com[^]*echo 'a b'[^]*docker create /);
  // What a root user gets, and the very text for the kernel.
  expect(outcome.stdout).toMatch(/agentbox-SESSION-net[^]*create agentbox-literal-4[^]*:AGENTBOX-OUT - [^]*-A AGENTBOX-OUT [^]*COMMIT/);
  expect(outcome.stdout).not.toContain("hush");
  expect(engine.calls().filter((call) => /^(create|start|rm|build|volume|pull|exec)/.test(call))).toEqual([]);
  expectNothingLeft();
});
