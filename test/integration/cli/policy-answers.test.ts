import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkSchema } from "../../../cli/commands/policy-check.ts";
import { suggestionsSchema } from "../../../cli/commands/policy-suggest.ts";
import { blockedSchema } from "../../../cli/log/refusals.ts";
import { describeSelf } from "../../../cli/session/owner.ts";
import { decisionRecordSchema, type DecisionRecord } from "../../../policy/decision-record.ts";
import { explanationSchema } from "../../../policy/explain.ts";
import { policyViewSchema } from "../../../policy/policy-view.ts";
import { PROBE_DETAIL } from "../../../policy/probe.ts";
import { FakeEngine } from "./fake-engine.ts";

let engine: FakeEngine;

beforeEach(() => {
  engine = new FakeEngine();
});

afterEach(() => engine.remove());

function configure(text: string): void {
  mkdirSync(path.join(engine.project, ".agentbox"), { recursive: true });
  writeFileSync(path.join(engine.project, ".agentbox/config.toml"), text);
}

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

function decided(seq: number, host: string, more: Partial<Decided> = {}): Decided {
  return {
    kind: "decision", time: "2026-11-21T04:00:00.000Z", seq, session: "s", protocol: "dns", host, port: null, type: "A", addresses: [],
    action: "deny", reason: "not_allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1, ...more,
  };
}

const lines = (records: readonly DecisionRecord[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join("");

/** Puts a session there, as it is while its box runs or after that. */
async function recordSession(id: string, records: readonly DecisionRecord[], more: { running?: boolean; project?: string } = {}): Promise<string> {
  const directory = path.join(engine.home, ".agentbox/sessions", id);
  mkdirSync(path.join(directory, "log"), { recursive: true });
  const ended = more.running === true ? null : { time: "2026-11-21T05:00:00.000Z", exitCode: 1 };
  const record = {
    version: 2, id, owner: await describeSelf(), engine: "docker", container: `agentbox-${id}`, topology: "container", holder: null, firewall: true,
    project: more.project ?? engine.project, agent: "claude", started: "2026-11-21T04:00:00.000Z", ended,
  };
  writeFileSync(path.join(directory, "session.json"), JSON.stringify(record));
  writeFileSync(path.join(directory, "log/decisions.jsonl"), lines(records));
  return directory;
}

describe("what the configuration says", () => {
  const text = '[network]\nallow_hosts = ["api.example.net:8443", "bucket.storage.googleapis.com", "github.com"]\nblock_hosts = ["pypi.org"]\n';

  test("is shown for people, with every origin and removal", async () => {
    configure(text);
    const { stdout, stderr, code } = await engine.run(["policy", "show"]);
    expect(stdout).toMatch(/^network allowlist[^]*not trusted yet[^]*api\.example\.net:8443 +\.agentbox\/config\.toml:2[^]*removed:\n +pypi\.org .*by the block pypi\.org \(\.agentbox\/config\.toml:3\)/);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("is shown for programs by the schema of the box's own policy.json", async () => {
    configure(text);
    const view = policyViewSchema.parse(JSON.parse((await engine.run(["policy", "show", "--json", "--agent", "codex"])).stdout));
    expect(view).toMatchObject({ mode: "allowlist", agent: "codex", removed: [{ text: "pypi.org" }] });
  });

  test.each([
    { name: "another port of an allowed host, with the port that is open", argv: ["api.example.net:443"], expected: { action: "deny", reason: "not_allowed", openPorts: [8443], nearest: { origins: [".agentbox/config.toml:2"] }, command: "agentbox policy allow api.example.net" } },
    { name: "a blocked host, with the block", argv: ["https://pypi.org/simple"], expected: { host: "pypi.org", port: 443, action: "deny", reason: "denied", rule: { origins: [".agentbox/config.toml:3"] }, command: null } },
    { name: "an address that is private", argv: ["10.0.0.1:5432"], expected: { action: "deny", command: null } },
  ])("is explained for $name", async ({ argv, expected }) => {
    configure(text);
    expect(explanationSchema.parse(JSON.parse((await engine.run(["policy", "explain", "--json", ...argv])).stdout))).toMatchObject(expected);
  });

  test("is checked: shared stores, entries without effect, and the trust that is missing", async () => {
    configure(text);
    const outcome = await engine.run(["policy", "check", "--json"]);
    const said = checkSchema.parse(JSON.parse(outcome.stdout)).findings.map(({ level, text: words }) => `${level} ${words}`).join("\n");
    expect(outcome.code).toBe(78);
    expect(said).toMatch(/problem .*not trusted/);
    expect(said).toMatch(/warning bucket\.storage\.googleapis\.com.*anybody/);
    expect(said).toMatch(/note github\.com .*is allowed already by allowlists\/services\.sh/);
  });

  test.each(["show", "check", "explain x.example.com", "diff", "trust", "presets x"])("`policy %s` tells a mistake with its line and caret, and ends with 78", async (words) => {
    configure("[network]\nallow_host = []\n");
    const argv = words === "presets x" ? ["apply", "go"] : words.split(" ");
    expect(await engine.run(["policy", ...argv])).toMatchObject({ code: 78, stdout: "", stderr: expect.stringMatching(/config\.toml:2:1: .*allow_hosts\?[^]*\^\^\^/) });
  });
});

describe("what holds for a box that runs", () => {
  test("is explained first where it differs from the configuration", async () => {
    const directory = await recordSession("20261121-040000-aaaaaa", [], { running: true });
    writeFileSync(path.join(directory, "overlay.json"), JSON.stringify({ allow: [{ text: "x.example.net" }], deny: [] }));
    const { stdout } = await engine.run(["policy", "explain", "x.example.net"]);
    expect(stdout).toMatch(/^session 20261121-040000-aaaaaa: x\.example\.net is allowed by allow x\.example\.net.*\(policy allow.*\)\nby the configuration.*\nx\.example\.net: refused/);
    expect((await engine.run(["policy", "explain", "y.example.net"])).stdout).toMatch(/^y\.example\.net: refused/);
  });

  test.each(["policy show", "policy diff", "policy check", "policy allow x.example.net"])("goes on and is told when `%s` finds a mistake", async (words) => {
    await recordSession("20261121-040000-aaaaaa", [], { running: true });
    await recordSession("20261121-030000-bbbbbb", []);
    engine.answer("container-inspect", `echo '{"Status":"running","ExitCode":0,"Error":"","OOMKilled":false}'; exit 0`);
    configure("[network]\nallow_host = []\n");
    const { code, stderr } = await engine.run(words.split(" "));
    expect(code).toBe(78);
    expect(stderr).toMatch(/session 20261121-040000-aaaaaa goes on with the policy that it has[^]*config\.toml:2:1/);
    expect(stderr).not.toContain("bbbbbb");
  });
});

test("a difference that is not trusted is shown with what to do next, and beside it what the boxes enforce", async () => {
  configure('[network]\nallow_hosts = ["x.example.net"]\n');
  const { code, stdout } = await engine.run(["policy", "diff"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/allow_hosts: \+ x\.example\.net[^]*Agree to it: agentbox policy trust\n[^]*No box of this project runs/) });
});

describe("what a session was refused", () => {
  const refusals = [decided(1, "example.com", { type: "SOA", detail: PROBE_DETAIL }), decided(2, "a.example.net", { count: 3 }), decided(3, "statsig.anthropic.com"), decided(4, "ok.example.net", { action: "allow", reason: "allowed", addresses: ["192.0.2.1"] })];

  test("is told for people: one line each, with the command; what the box asked itself and telemetry left out", async () => {
    await recordSession("20261121-040000-aaaaaa", refusals);
    const { stdout, stderr } = await engine.run(["blocked"]);
    expect(stdout).toBe("2026-11-21T04:00:00.000Z  a.example.net  dns  not_allowed  3 times  allow it: agentbox policy allow --always a.example.net\n");
    expect(stderr).toMatch(/session 20261121-040000-aaaaaa, ended[^]*1 host of telemetry left out[^]*write into the configuration/);
  });

  test("names what works for the box that runs: a command for it, and how to take back what was denied for it", async () => {
    const denied = { reason: "denied", source: "policy deny" } as const;
    await recordSession("20261121-040000-aaaaaa", [decided(1, "a.example.net"), decided(2, "b.example.net", { ...denied, rule: "deny b.example.net" }), decided(3, "c.example.net", { ...denied, rule: "deny *.example.net" })], { running: true });
    const { stdout } = await engine.run(["blocked"]);
    expect(stdout).toContain("allow it: agentbox policy allow a.example.net\n");
    expect(stdout).toMatch(/ b\.example\.net .*agentbox policy allow b\.example\.net takes that back\n.* c\.example\.net .*remove the rule/);
  });

  test("is told for programs by a schema", async () => {
    await recordSession("20261121-040000-aaaaaa", refusals);
    const { stdout } = await engine.run(["blocked", "--all", "--json"]);
    expect(blockedSchema.parse(JSON.parse(stdout))).toMatchObject({ session: "20261121-040000-aaaaaa", running: false, refusals: [{ host: "example.com" }, { host: "a.example.net", count: 3 }, { host: "statsig.anthropic.com" }] });
  });

  test("is that of this project's running session before a newer one that ended, and never another project's", async () => {
    await recordSession("20261121-040000-aaaaaa", [decided(1, "running.example.net")], { running: true });
    await recordSession("20261121-050000-bbbbbb", [decided(1, "ended.example.net")]);
    await recordSession("20261121-060000-cccccc", [decided(1, "other.example.net")], { running: true, project: "/elsewhere" });
    expect((await engine.run(["blocked"])).stdout).toMatch(/running\.example\.net/);
    expect((await engine.run(["blocked", "--session", "20261121-050000"])).stdout).toMatch(/ended\.example\.net/);
    expect(await engine.run(["blocked", "--session", "2026"])).toMatchObject({ code: 64, stderr: expect.stringMatching(/more than one session/) });
  });

  test("cannot act on the terminal that shows it", async () => {
    await recordSession("20261121-040000-aaaaaa", [decided(1, '"\u{9b}2J\u{1b}[2J\u{202e}"', { detail: "\u{1b}]0;x\u{7}" })]);
    for (const argv of [["blocked"], ["logs"], ["logs", "--json"]]) expect((await engine.run(argv)).stdout).not.toMatch(/[^\P{Cc}\n]|\u{202e}/u);
  });

  test("nothing is told where no session is recorded", async () => {
    expect(await engine.run(["blocked"])).toMatchObject({ code: 0, stdout: "", stderr: "agentbox: no session of this project with a firewall is recorded\n" });
    expect(blockedSchema.parse(JSON.parse((await engine.run(["blocked", "--json"])).stdout))).toMatchObject({ session: null });
  });
});

describe("the decision log", () => {
  test("is printed as lines that mean the same as those of the file", async () => {
    const records = [decided(1, "a.example.net"), decided(2, "b.example.net")];
    await recordSession("20261121-040000-aaaaaa", records);
    const { stdout } = await engine.run(["logs", "--json"]);
    expect(stdout.trim().split("\n").map((line) => decisionRecordSchema.parse(JSON.parse(line)))).toEqual(records);
  });

  test("is followed until the session ends", async () => {
    const directory = await recordSession("20261121-040000-aaaaaa", [decided(1, "a.example.net")], { running: true });
    const { child, outcome } = engine.start(["logs", "--follow"]);
    let seen = "";
    child.stdout?.on("data", (chunk: Buffer) => (seen += chunk.toString()));
    while (!seen.includes("a.example.net")) await sleep(20);
    appendFileSync(path.join(directory, "log/decisions.jsonl"), lines([decided(2, "b.example.net")]));
    while (!seen.includes("b.example.net")) await sleep(20);
    await recordSession("20261121-040000-aaaaaa", [decided(1, "a.example.net"), decided(2, "b.example.net"), decided(3, "c.example.net")]);
    const { code, stdout } = await outcome;
    expect({ code, hosts: stdout.trim().split("\n").map((line) => /\w\.example\.net/.exec(line)?.[0]) }).toEqual({ code: 0, hosts: ["a.example.net", "b.example.net", "c.example.net"] });
  });

  test.each([["blocked"], ["logs"], ["logs", "--follow"], ["policy", "suggest"], ["blocked", "--json"]])("that lost its oldest lines is told of, and a whole one is not: %s %s", async (...argv) => {
    await recordSession("20261121-040000-aaaaaa", [decided(500, "a.example.net")]);
    const words = argv.filter((word) => word !== undefined);
    const outcome = await engine.run(words);
    expect(outcome.code).toBe(0);
    expect(outcome.stderr).toMatch(/older lines of its log are gone \(500\)/);
    expect(outcome.stdout).not.toContain("are gone");
    await recordSession("20261121-050000-bbbbbb", [decided(0, "a.example.net")]);
    expect((await engine.run(words)).stderr).not.toContain("are gone");
  });

  test("says what a session used, as the smallest list", async () => {
    await recordSession("20261121-040000-aaaaaa", [decided(1, "ok.example.net", { action: "allow", reason: "allowed" }), decided(2, "no.example.net"), decided(3, "pypi.org", { action: "allow", reason: "allowed" })]);
    expect(suggestionsSchema.parse(JSON.parse((await engine.run(["policy", "suggest", "--json"])).stdout))).toMatchObject({ defaults: ["pypi.org"], entries: [{ text: "ok.example.net" }] });
    const { stdout, stderr } = await engine.run(["policy", "suggest"]);
    expect(stderr).toMatch(/1 host is allowed by default and left out: pypi\.org/);
    expect(stdout).toMatch(/^\[network\]\nallow_hosts = \[\n {2}"ok\.example\.net", # 1 time\n\]\n$/);
  });
});
