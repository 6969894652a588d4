import { spawnSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeEngine } from "./fake-engine.ts";

const hasScript = spawnSync("script", ["--version"], { stdio: "ignore" }).status === 0;

/** What the entrypoint does in a box with a launch screen: events, then waiting until the file is gone. */
function playBox(events: readonly string[]): string {
  const lines = events.map((event) => `printf '%s\\n' '${event}' >>"$1/progress.jsonl"`);
  return [
    `boot() {\n${lines.join("; sleep 0.05\n")}\nwhile [ -e "$1/progress.jsonl" ]; do sleep 0.02; done\necho "handed over" >>"$FAKE/calls"\n: >"$FAKE/over"\n}`,
    'for directory in "$HOME"/.agentbox/sessions/*/box-launch; do (exec >/dev/null 2>&1; boot "$directory") & done',
    "exit 0",
  ].join("\n");
}

const ready = '{"event":"ready","text":"firewall on: verified","ms":12}';
const waitForEnd = 'while [ ! -e "$FAKE/over" ]; do sleep 0.02; done';
let engine: FakeEngine;

beforeEach(() => {
  engine = new FakeEngine();
  // As `docker wait`: until the box has ended.
  engine.answer("wait", `${waitForEnd}; echo 0; exit 0`);
  engine.answer("events", "echo resize; sleep 5; exit 0");
});

afterEach(() => engine.remove());

describe.skipIf(!hasScript)("a start on a terminal", () => {
  test("attaches the terminal before the agent may run, and passes its exit code on", async () => {
    engine.answer("start", playBox(['{"event":"done","step":"rules","ms":3,"detail":"58 addresses"}', ready]));
    engine.answer("attach", `echo attached-output; ${waitForEnd}; exit 5`);
    engine.answer("container-inspect", `echo '{"Status":"exited","ExitCode":5,"Error":""}'; exit 0`);
    const { code, stdout } = await engine.startOnTerminal(["shell"]).outcome;
    expect(stdout).toMatch(/rules: 58 addresses \(3 ms\)[^]*firewall on: verified \(12 ms\)[^]*attached-output/);
    expect(code).toBe(5);
    const order = engine.calls().map((call) => call.split(" ")[0] ?? "");
    expect(order.indexOf("events")).toBeGreaterThan(order.indexOf("start"));
    expect(order.indexOf("attach")).toBeLessThan(order.indexOf("handed"));
    expect(engine.sessions()).toEqual([]);
  });

  test("shows why a box did not start, ends with its code and never attaches", async () => {
    engine.answer("start", playBox(['{"event":"failed","step":"rules","text":"no ip_set; fix: load it","exitCode":70}']));
    const { code, stdout } = await engine.startOnTerminal(["shell"]).outcome;
    expect(stdout).toMatch(/error: rules: no ip_set; fix: load it/);
    expect(code).toBe(70);
    expect(engine.calls().some((call) => call.startsWith("attach"))).toBe(false);
    expect(engine.sessions()).toEqual([]);
  });

  test("says so when a box ends without a reason", async () => {
    engine.answer("start", "exit 0");
    engine.answer("wait", "echo 137; exit 0");
    engine.answer("container-inspect", `echo '{"Status":"exited","ExitCode":137,"Error":""}'; exit 0`);
    const { code, stdout } = await engine.startOnTerminal(["shell"]).outcome;
    expect(stdout).toMatch(/the box ended while it started \(exit code 137\) and gave no reason/);
    expect(code).toBe(70);
    expect(engine.sessions()).toEqual([]);
  });

  test("Ctrl-C while the box starts removes it, and the agent never runs", async () => {
    engine.answer("start", playBox(['{"event":"start","step":"resolving"}']));
    const { child, outcome } = engine.startOnTerminal(["shell"]);
    await engine.awaitCall("wait");
    child.stdin?.write("\u0003");
    expect(await outcome).toMatchObject({ code: 130 });
    expect(engine.calls().some((call) => call.startsWith("attach"))).toBe(false);
    expect(engine.calls().some((call) => call.startsWith("rm --force"))).toBe(true);
    expect(engine.sessions()).toEqual([]);
  });
});
