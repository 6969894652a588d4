import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeEngine, type Outcome } from "./fake-engine.ts";

// The command line's side of a box of two containers, against an engine's client that only plays along.
let engine: FakeEngine;

const run = ["run", "--topology", "sidecar", "--dns", "192.0.2.53", "-p", "8080", "--add-host", "db:192.0.2.7", "-e", "TOKEN=hush", "--", "true"];
const on = { AGENTBOX_FIREWALL: "1" };

/** Plays a holder: it says how its start went, and runs until it is removed or `$FAKE/died` is there. */
function playHolder(event: object, agent = "exit 0"): void {
  engine.answer("start", `case "$*" in *-net) for d in "$HOME"/.agentbox/sessions/*/holder-launch; do echo '${JSON.stringify(event)}' >"$d/progress.jsonl"; done ;; *) ${agent} ;; esac`);
  engine.answer("wait", 'for i in $(seq 200); do [ ! -e "$FAKE/died" ] || { echo 137; exit 0; }; sleep 0.05; done');
}

beforeEach(() => {
  engine = new FakeEngine();
  playHolder({ event: "ready", text: "verified", ms: 1 });
});

afterEach(() => engine.remove());

/** Verb and container of the calls that make, start and remove. */
function steps(): string[] {
  return engine.calls().flatMap((call) => {
    const verb = /^(create|start|rm)\b/.exec(call)?.[1];
    return verb === undefined ? [] : [`${verb} ${/agentbox-[0-9a-z-]+?-net\b/.test(call.replace("container:agentbox", "")) ? "holder" : "agent"}`];
  });
}

function expectNoAgent(outcome: Outcome): void {
  expect(outcome.stdout).toBe("");
  expect(steps()).not.toContain("start agent");
  expect(steps().slice(-2)).toEqual(["rm agent", "rm holder"]);
  expect(engine.sessions()).toEqual([]);
}

function readRecord(id: string): unknown {
  return JSON.parse(readFileSync(path.join(engine.home, ".agentbox/sessions", id, "session.json"), "utf8"));
}

describe("a box of two containers", () => {
  test("is made and started holder first, and removed agent first", async () => {
    expect(await engine.run(run, on)).toMatchObject({ code: 0, stdout: "" });
    expect(steps().filter((step) => step !== "create agent")).toEqual(["create holder", "start holder", "start agent", "rm agent", "rm holder"]);
    expect(steps()).toContain("create agent");
    expect(engine.sessions()).toEqual([]);
  });

  test("gives the network's rights and settings to the holder and the project to the agent", async () => {
    await engine.run(run, on);
    const [holder = "", agent = ""] = engine.calls().filter((call) => call.startsWith("create ")).toSorted((a) => (a.includes("agentbox.role=holder") ? -1 : 1));
    expect(holder).toMatch(/--cap-add NET_ADMIN.*--hostname agentbox --network bridge.*--add-host db:192\.0\.2\.7 --publish 127\.0\.0\.1:8080:8080/);
    expect(holder).toMatch(/--tmpfs \/var\/lib\/agentbox-keeper\/run:\S*size=\d+m.*target=\/var\/lib\/agentbox-keeper\/log/);
    expect(holder).not.toContain(`source=${engine.project}`);
    expect(agent).toMatch(/--network container:agentbox-[0-9a-f-]+-net/);
    expect(agent).toContain(`source=${engine.project}`);
    expect(agent).toContain("target=/etc/resolv.conf,readonly");
    expect(agent).not.toMatch(/cap-add|--publish|--add-host|--hostname|--dns|agentbox-keeper/);
  });

  test("tells the holder nothing of the agent's variables and command", async () => {
    engine.answer("rm", 'cp "$HOME"/.agentbox/sessions/*/box/box.json "$FAKE/agent.json"; cp "$HOME"/.agentbox/sessions/*/holder/box.json "$FAKE/holder.json"');
    await engine.run(run, on);
    const spec = (name: string): unknown => JSON.parse(readFileSync(path.join(engine.home, "../fake", name), "utf8"));
    expect(spec("agent.json")).toMatchObject({ role: "agent", env: { TOKEN: "hush" }, command: ["true"], dns: { upstreams: [] }, published: [] });
    expect(spec("holder.json")).toMatchObject({ role: "holder", env: {}, command: [], dns: { upstreams: ["192.0.2.53"] }, published: [{ port: 8080, protocol: "tcp" }] });
  });

  test("passes the agent's exit code on", async () => {
    engine.answer("container-inspect", `echo '{"Status":"exited","ExitCode":42,"Error":""}'; exit 0`);
    expect((await engine.run(run, on)).code).toBe(42);
  });
});

describe("a holder that fails", () => {
  test("says why itself, its exit code is the run's, and no agent is started", async () => {
    playHolder({ event: "failed", step: "resolving", text: "the critical service does not resolve", exitCode: 69 });
    const outcome = await engine.run(run, on);
    expect(outcome).toMatchObject({ code: 69 });
    expect(outcome.stderr).toContain("resolving: the critical service does not resolve");
    expectNoAgent(outcome);
  });

  test("without a word is exit 70, and no agent is started", async () => {
    engine.answer("start", "exit 0");
    engine.answer("wait", "echo 137; exit 0");
    const outcome = await engine.run(run, on);
    expect(outcome.code).toBe(70);
    expect(outcome.stderr).toMatch(/ended while it started .* gave no reason/);
    expectNoAgent(outcome);
  });

  test("to be made leaves nothing", async () => {
    engine.answer("create", "echo 'no space left on device' >&2; exit 1");
    const outcome = await engine.run(run, on);
    expect(outcome).toMatchObject({ code: 69 });
    expectNoAgent(outcome);
  });
});

test("an agent's container that cannot be made takes its holder with it", async () => {
  engine.answer("create", `case "$*" in *agentbox.role=agent*) echo 'no space left on device' >&2; exit 1 ;; esac`);
  expect(await engine.run(run, on)).toMatchObject({ code: 69, stdout: "" });
  expect(steps().slice(-2)).toEqual(["rm agent", "rm holder"]);
  expect(engine.sessions()).toEqual([]);
});

test("a holder that dies ends the agent at once, before anybody could start it again", async () => {
  engine.answer("kill", ': >"$FAKE/killed"');
  playHolder({ event: "ready", text: "verified", ms: 1 }, ': >"$FAKE/died"; for i in $(seq 200); do [ ! -e "$FAKE/killed" ] || exit 137; sleep 0.05; done; echo agent ran on; exit 0');
  const outcome = await engine.run(run, on);
  expect(outcome).toMatchObject({ code: 70, stdout: "" });
  expect(outcome.stderr).toMatch(/-net, which keeps the firewall, ended with 137/);
  expect(engine.calls().some((call) => /^kill --signal SIGKILL agentbox-[0-9a-f-]+$/.test(call))).toBe(true);
  expect(engine.sessions()).toEqual([]);
});

test("a keeper that is gone while its holder runs on ends the agent", { timeout: 90_000 }, async () => {
  engine.answer("kill", ': >"$FAKE/killed"');
  const agent = 'for i in $(seq 1200); do [ ! -e "$FAKE/killed" ] || exit 137; sleep 0.05; done; echo agent ran on; exit 0';
  playHolder({ event: "ready", text: "verified", ms: 1 }, `: >"$(ls -d "$HOME"/.agentbox/sessions/*/log)/keeper.alive"; ${agent}`);
  engine.answer("wait", 'for i in $(seq 1200); do [ ! -e "$FAKE/killed" ] || { echo 137; exit 0; }; sleep 0.05; done');
  engine.answer("exec", "echo 'no such process' >&2; exit 1");
  engine.answer("container-inspect", `echo '{"Status":"running","ExitCode":0,"Error":"","OOMKilled":false}'; exit 0`);
  const outcome = await engine.run(run, on);
  expect(outcome).toMatchObject({ code: 70, stdout: "" });
  expect(outcome.stderr).toMatch(/the keeper of the box is gone: agentbox-\S+-net did not answer: no such process/);
  expect(engine.calls().filter((call) => call.startsWith("exec "))).toHaveLength(2);
  expect(engine.sessions()).toEqual([]);
});

test("both containers of a killed command line are removed by the next start, the agent's first", async () => {
  playHolder({ event: "ready", text: "verified", ms: 1 }, "sleep 2");
  const { child, outcome } = engine.start(run, on);
  await engine.awaitCall("start --attach");
  child.kill("SIGKILL");
  await outcome;
  const before = engine.calls().length;
  playHolder({ event: "ready", text: "verified", ms: 1 });
  expect((await engine.run(run, on)).stderr).toMatch(/removed what a killed session left/);
  const removed = engine.calls().slice(before).filter((call) => call.startsWith("rm "));
  expect(removed[0]).toMatch(/agentbox-[0-9]+-[0-9]+-[0-9a-f]+$/);
  expect(removed[1]).toBe(`${removed[0]}-net`);
  expect(engine.sessions()).toEqual([]);
});

describe("a decision log", () => {
  const write = 'echo "{}" >>"$(ls -d "$HOME"/.agentbox/sessions/*/log | tail -n 1)/decisions.jsonl"; exit 0';

  test("outlives the box, with a record of how the session ended and nothing else", async () => {
    playHolder({ event: "ready", text: "verified", ms: 1 }, write);
    engine.answer("container-inspect", `echo '{"Status":"exited","ExitCode":3,"Error":""}'; exit 0`);
    expect(await engine.run(run, on)).toMatchObject({ code: 3 });
    const [id = ""] = engine.sessions();
    expect(readRecord(id)).toMatchObject({ topology: "sidecar", agent: "shell", project: engine.project, ended: { exitCode: 3 } });
    expect((await engine.runShell(`ls ~/.agentbox/sessions/${id}`)).stdout).toBe("decisions.jsonl\nlog\nsession.json\n");
  });

  test("of a killed session is kept too, as one that ended nobody knows how", async () => {
    playHolder({ event: "ready", text: "verified", ms: 1 }, `sleep 2; ${write}`);
    engine.answer("wait", "sleep 3");
    const { child, outcome } = engine.start(run, on);
    await engine.awaitCall("start --attach");
    const [id = ""] = engine.sessions();
    await engine.runShell(`echo "{}" >~/.agentbox/sessions/${id}/log/decisions.jsonl`);
    child.kill("SIGKILL");
    await outcome;
    expect((await engine.runShell("agentbox cleanup")).stdout).toContain("1 killed session cleared");
    expect(readRecord(id)).toMatchObject({ ended: { exitCode: null } });
  });
});

test.each([
  { name: "root of one container with the keeper", argv: ["run", "--topology", "container", "--", "true"], said: /--topology sidecar/ },
  { name: "an administrator of one container with the keeper", argv: ["shell", "--admin", "--topology", "container", "--", "true"], said: /--topology sidecar/ },
])("refuses $name, before anything is made", async ({ argv, said }) => {
  const outcome = await engine.run(argv, on);
  expect(outcome.code).toBe(64);
  expect(outcome.stderr).toMatch(said);
  expect(steps()).toEqual([]);
});
