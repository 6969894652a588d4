import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { statisticsSchema } from "../../../cli/log/statistics.ts";
import { describeSelf } from "../../../cli/session/owner.ts";
import { hookAnswerSchema } from "../../../policy/claude-hook.ts";
import type { DecisionRecord } from "../../../policy/decision-record.ts";
import { preflightSchema } from "../../../policy/preflight.ts";
import { FakeEngine } from "./fake-engine.ts";

let engine: FakeEngine;

beforeEach(() => {
  engine = new FakeEngine();
});

afterEach(() => engine.remove());

const ON = '[network]\nallow_hosts = ["ok.example.net"]\n';

function configure(text: string, directory = path.join(engine.project, ".agentbox")): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, "config.toml"), text);
}

/** Puts a session there that runs, or one that ended. */
async function recordSession(id: string, { running, records = [], overlay }: { running: boolean; records?: readonly DecisionRecord[]; overlay?: object }): Promise<void> {
  const directory = path.join(engine.home, ".agentbox/sessions", id);
  mkdirSync(path.join(directory, "log"), { recursive: true });
  const record = {
    version: 2, id, owner: await describeSelf(), engine: "docker", container: `agentbox-${id}`, topology: "container", holder: null, firewall: true,
    project: engine.project, agent: "claude", started: "2026-11-21T04:00:00.000Z", ended: running ? null : { time: "2026-11-21T05:00:00.000Z", exitCode: 0 },
  };
  writeFileSync(path.join(directory, "session.json"), JSON.stringify(record));
  writeFileSync(path.join(directory, "log/decisions.jsonl"), records.map((each) => `${JSON.stringify(each)}\n`).join(""));
  if (overlay !== undefined) writeFileSync(path.join(directory, "overlay.json"), JSON.stringify(overlay));
}

const input = (tool: string, toolInput: object, more: object = {}): string => JSON.stringify({ session_id: "s", hook_event_name: "PreToolUse", tool_name: tool, tool_input: toolInput, cwd: engine.project, ...more });

async function ask(text: string, env: Record<string, string> = {}): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const file = path.join(engine.home, "input.json");
  writeFileSync(file, text);
  return await engine.runShell(`agentbox hook claude < '${file}'`, env);
}

describe("agentbox preflight", () => {
  test("ends with 0 where all is allowed, and with 1 and the command where something is refused", async () => {
    configure(ON);
    expect(await engine.run(["preflight", "--", "curl", "https://ok.example.net/x"])).toMatchObject({ code: 0, stdout: "allowed  ok.example.net:443  curl  rule allow ok.example.net:443 (.agentbox/config.toml:2)\n" });
    expect(await engine.run(["preflight", "--", "curl", "https://no.example.net/x"])).toMatchObject({ code: 1, stdout: "refused  no.example.net:443  curl  not_allowed  allow it: agentbox policy allow --always no.example.net\n", stderr: expect.stringContaining("not trusted yet") });
  });

  test("runs nothing of what it looks at", async () => {
    configure(ON);
    const sentinel = path.join(engine.project, "ran");
    const outcome = await engine.run(["preflight", "--mode", "heuristic", "--", "bash", "-c", `touch '${sentinel}'; curl https://no.example.net $(touch '${sentinel}')`]);
    expect([outcome.code, existsSync(sentinel)]).toEqual([1, false]);
  });

  test("answers programs by its schema", async () => {
    configure(ON);
    const { stdout, code } = await engine.run(["preflight", "--json", "--mode", "heuristic", "--", "sh", "-c", "git push git@no.example.net:a/b; curl https://ok.example.net"]);
    expect(code).toBe(1);
    expect(preflightSchema.parse(JSON.parse(stdout))).toMatchObject({
      mode: "heuristic", session: null, enforced: true, refused: true,
      needs: [
        { kind: "host", host: "no.example.net", port: 22, program: "git", action: "deny", command: "agentbox policy allow --always no.example.net:22" },
        { kind: "socket", socket: "ssh-agent", program: "git", action: "deny" },
        { kind: "host", host: "ok.example.net", port: 443, program: "curl", action: "allow" },
      ],
    });
  });

  test("is strict unless the configuration or the option says otherwise", async () => {
    const argv = ["preflight", "--", "bash", "-c", "curl https://no.example.net"];
    configure(ON);
    expect(await engine.run(argv)).toMatchObject({ code: 0, stdout: "Nothing that is plain to see needs the network (strict).\n" });
    configure(`${ON}[network_proxy]\npreflight_mode = "heuristic"\n`);
    expect((await engine.run(argv)).code).toBe(1);
    expect((await engine.run(["preflight", "--mode", "strict", ...argv.slice(1)])).code).toBe(0);
  });

  test("needs no agent where boxes have a key of their own, and knows the sockets that are listed", async () => {
    const argv = ["preflight", "--mode", "heuristic", "--", "git", "clone", "git@github.com:a/b"];
    configure(ON);
    expect(await engine.run(argv)).toMatchObject({ code: 1, stdout: expect.stringMatching(/^depends {2}github\.com:22 .*\nrefused {2}ssh-agent {2}git {2}unix_socket_unsupported {2}make a key/) });
    configure(`${ON}[network_proxy.policy]\nallow_unix_sockets = ["ssh-agent"]\n`);
    expect(await engine.run(argv)).toMatchObject({ code: 0, stdout: expect.stringMatching(/allowed {2}ssh-agent {2}git\n/) });
    configure(ON);
    mkdirSync(path.join(engine.home, ".agentbox/ssh"), { recursive: true });
    writeFileSync(path.join(engine.home, ".agentbox/ssh/id_ed25519"), "");
    expect(await engine.run(argv)).toMatchObject({ code: 0, stdout: expect.not.stringContaining("ssh-agent") });
  });

  test("refuses nothing where a box here has no firewall, and everything where it has no network", async () => {
    const argv = ["preflight", "--", "curl", "https://no.example.net"];
    expect(await engine.run(argv)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^refused/), stderr: expect.stringMatching(/firewall is off.*nothing is refused/) });
    expect((await engine.run(argv, { AGENTBOX_FIREWALL: "1" })).code).toBe(1);
    configure('[network]\nmode = "none"\nallow_hosts = ["no.example.net"]\n');
    expect(await engine.run(argv)).toMatchObject({ code: 1, stdout: expect.stringContaining("no network at all") });
  });

  test("judges by the box that runs, with what was changed for it, and offers what changes that box", async () => {
    await recordSession("20261121-030000-bbbbbb", { running: false });
    await recordSession("20261121-040000-aaaaaa", { running: true, overlay: { allow: [{ text: "once.example.net" }], deny: [{ text: "ok.example.net" }] } });
    configure(ON);
    expect(await engine.run(["preflight", "--", "curl", "https://once.example.net", "https://ok.example.net", "https://no.example.net"])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^allowed {2}once\.example\.net.*\nrefused {2}ok\.example\.net:443 {2}curl {2}denied .*policy deny.*\nrefused {2}no\.example\.net.*allow it: agentbox policy allow no\.example\.net\n$/),
      stderr: expect.stringContaining("judged by session 20261121-040000-aaaaaa"),
    });
  });

  test("tells a mistake of the configuration with its line, and ends with 78", async () => {
    configure("[network]\nallow_host = []\n");
    expect(await engine.run(["preflight", "--", "curl", "https://x.example.net"])).toMatchObject({ code: 78, stdout: "", stderr: expect.stringMatching(/config\.toml:2:1/) });
  });
});

describe("agentbox hook claude", () => {
  test("refuses a command that would be refused, with host, reason and remedy", async () => {
    configure(ON);
    const { code, stdout } = await ask(input("Bash", { command: "cd x && curl -s https://no.example.net/x | jq . && wget https://also.example.net" }));
    const { hookSpecificOutput: answer } = hookAnswerSchema.parse(JSON.parse(stdout));
    expect(code).toBe(0);
    expect(answer.permissionDecisionReason).toBe(
      "AgentBox blocked no.example.net:443: not_allowed; to allow it, a human runs on the host: agentbox policy allow --always no.example.net\n" +
        "AgentBox blocked also.example.net:443: not_allowed; to allow it, a human runs on the host: agentbox policy allow --always also.example.net",
    );
  });

  test("refuses a page that would be refused", async () => {
    configure(ON);
    expect(hookAnswerSchema.parse(JSON.parse((await ask(input("WebFetch", { url: "https://no.example.net/", prompt: "x" }))).stdout)).hookSpecificOutput.permissionDecisionReason).toMatch(/no\.example\.net:443: not_allowed/);
  });

  test.each<[string, string, object]>([
    ["what is allowed", "Bash", { command: "curl https://ok.example.net" }],
    ["what needs no network", "Bash", { command: "ls -l" }],
    ["an allowed page", "WebFetch", { url: "https://ok.example.net/" }],
    ["another tool", "Write", { file_path: "/x", content: "curl https://no.example.net" }],
  ])("says nothing at all of %s: whether the user is asked stays as it is", async (_row, tool, toolInput) => {
    configure(ON);
    expect(await ask(input(tool, toolInput))).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  test("says nothing where a box here has no firewall", async () => {
    expect(await ask(input("Bash", { command: "curl https://no.example.net" }))).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  test.each<[string, string]>([
    ["nothing", ""],
    ["half a line", '{"hook_event_name":'],
    ["another event", JSON.stringify({ hook_event_name: "Stop", tool_name: "Bash", tool_input: { command: "curl https://no.example.net" } })],
    ["a command that is no text", JSON.stringify({ hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: { command: 1 } })],
  ])("holds nothing up when it reads %s: one line on stderr", async (_row, text) => {
    configure(ON);
    expect(await ask(text)).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/^agentbox: hook: [^\n]*nothing is decided\n$/) });
  });

  test("holds nothing up where the configuration is broken, where there is no home, and where the input is too large", async () => {
    configure("[network]\nallow_host = []\n");
    const text = input("Bash", { command: "curl https://no.example.net" });
    expect(await ask(text)).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/config\.toml:2:1[^]*hook: nothing is decided\n$/) });
    expect(await ask(text, { HOME: "/" })).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/hook: nothing is decided\n$/) });
    configure(ON);
    expect(await ask(`${text}${" ".repeat(17 * 1024 * 1024)}`)).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/16 MiB[^]*nothing is decided\n$/) });
  });

  test("judges by the project that Claude was started in, not by where it is now", async () => {
    configure(ON);
    const elsewhere = path.join(engine.home, "elsewhere");
    mkdirSync(elsewhere);
    const text = input("Bash", { command: "curl https://no.example.net" }, { cwd: elsewhere });
    expect((await ask(text)).stdout).toBe("");
    expect((await ask(text, { CLAUDE_PROJECT_DIR: engine.project })).stdout).toContain('"deny"');
  });
});

describe("agentbox logs stats", () => {
  const records: DecisionRecord[] = [
    { kind: "decision", time: "2026-11-21T04:00:01.000Z", seq: 0, session: "s", protocol: "dns", host: "a.example.net", port: null, type: "A", addresses: [], action: "allow", reason: "allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 1 },
    { kind: "traffic", time: "2026-11-21T04:00:02.000Z", seq: 1, session: "s", protocol: "tls-sni", method: null, host: "a.example.net", port: 443, bytesUp: 500, bytesDown: 2_000_000, durationMs: 9, flows: 2, cut: false },
    { kind: "decision", time: "2026-11-21T04:00:03.000Z", seq: 4, session: "s", protocol: "http", host: "b.example.net", port: 80, type: null, method: "POST", addresses: [], action: "deny", reason: "method_not_allowed", rule: null, source: null, detail: null, hint: null, client: null, count: 3 },
  ];

  test("counts what a session did, and the lines that are gone", async () => {
    await recordSession("20261121-040000-aaaaaa", { running: false, records });
    const { stdout, stderr, code } = await engine.run(["logs", "stats"]);
    expect(code).toBe(0);
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 7))).toEqual([
      ["host", "protocols", "allowed", "refused", "up", "down", "flows"],
      ["a.example.net:443", "dns,tls-sni", "1", "0", "500 B", "2.0 MB", "2"],
      ["b.example.net:80", "http", "0", "3", "0 B", "0 B", "0"],
      ["total", "1", "3", "500 B", "2.0 MB", "2", "2026-11-21T04:00:01.000Z"],
      [""],
    ]);
    expect(stderr).toMatch(/2 lines of its log are gone in between[^]*session 20261121-040000-aaaaaa, ended/);
    expect(statisticsSchema.parse(JSON.parse((await engine.run(["logs", "stats", "--json", "20261121-04"])).stdout))).toMatchObject({ session: "20261121-040000-aaaaaa", running: false, gone: 2, unread: 0, total: { bytesDown: 2_000_000 }, hosts: [{ host: "a.example.net", first: "2026-11-21T04:00:01.000Z" }, {}] });
  });

  test("counts what the proxy without a box did, and its log is shown", async () => {
    const directory = path.join(engine.home, ".agentbox/proxy");
    mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(directory, "decisions.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    expect(await engine.run(["logs", "--session", "proxy"])).toMatchObject({ code: 0, stdout: expect.stringContaining("deny    b.example.net:80"), stderr: expect.stringMatching(/the stand-alone proxy[^]*gone in between/) });
    expect(statisticsSchema.parse(JSON.parse((await engine.run(["logs", "stats", "--json", "--session", "proxy"])).stdout))).toMatchObject({ session: "proxy", total: { bytesDown: 2_000_000 } });
    expect(await engine.run(["blocked", "--session", "proxy"])).toMatchObject({ code: 64, stderr: expect.stringContaining("agentbox proxy ctl blocked") });
  });

  test("is nothing where no session is recorded, and refuses one that is none", async () => {
    expect(await engine.run(["logs", "stats"])).toMatchObject({ code: 0, stdout: "", stderr: "agentbox: no session of this project with a firewall is recorded\n" });
    expect(statisticsSchema.parse(JSON.parse((await engine.run(["logs", "stats", "--json"])).stdout))).toMatchObject({ session: null, hosts: [] });
    expect((await engine.run(["logs", "stats", "2027"])).code).toBe(64);
  });

  test("is of lines that logs and blocked show in the same words", async () => {
    await recordSession("20261121-040000-aaaaaa", { running: false, records });
    expect((await engine.run(["logs"])).stdout).toMatch(/bytes {3}a\.example\.net:443 {2}tls-sni {2}500 up {2}2000000 down {2}9 ms {2}2 connections\n.*deny {4}b\.example\.net:80 {2}http POST {2}method_not_allowed {2}3 times\n/);
    expect((await engine.run(["blocked"])).stdout).toMatch(/ b\.example\.net:80 {2}http POST {2}method_not_allowed {2}3 times {2}the mode is "limited": set mode = "full"/);
  });
});

describe("agentbox proxy seatbelt-profile", () => {
  test("prints the profile of the file that is named; other programs' tables in it do not matter", async () => {
    configure('model = "x"\n[network_proxy]\nproxy_url = "http://127.0.0.1:4128"\nenable_socks5 = false\n[network_proxy.policy]\nallow_unix_sockets = ["ssh-agent"]\n', path.join(engine.project, "other"));
    const { stdout, code } = await engine.run(["proxy", "seatbelt-profile", "--config", "other/config.toml"], { SSH_AUTH_SOCK: "/tmp/agent.sock" });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\(version 1\)\n\(allow default\)\n[^]*\(deny network\*\)\n[^]*localhost:4128"\)\)\n\n; allow_unix_sockets\n.*"\/private\/tmp\/agent\.sock"\)\)\)\n.*"\/tmp\/agent\.sock"\)\)\)\n$/);
  });

  test("prints the usual ports without a file, says what stays closed, and what it clamps", async () => {
    expect(await engine.run(["proxy", "seatbelt-profile"])).toMatchObject({ code: 0, stdout: expect.stringMatching(/localhost:3128"[^]*localhost:8081"/), stderr: "" });
    configure('[network_proxy]\nproxy_url = "http://0.0.0.0:3128"\n[network_proxy.policy]\nallow_unix_sockets = ["ssh-agent"]\n', path.join(engine.home, ".agentbox"));
    expect(await engine.run(["proxy", "seatbelt-profile"])).toMatchObject({ code: 0, stderr: expect.stringMatching(/listens on 127\.0\.0\.1:3128[^]*SSH_AUTH_SOCK is not set/) });
  });

  test("takes no sockets from a project that nobody trusts", async () => {
    configure('[network_proxy.policy]\nallow_unix_sockets = ["/var/run/x.sock"]\n');
    expect(await engine.run(["proxy", "seatbelt-profile"])).toMatchObject({ code: 78, stdout: "", stderr: expect.stringContaining("agentbox policy trust") });
    expect((await engine.run(["policy", "trust"])).code).toBe(0);
    expect(await engine.run(["proxy", "seatbelt-profile"])).toMatchObject({ code: 0, stdout: expect.stringContaining('"/private/var/run/x.sock"') });
  });

  test.each<[string, string, string[], number, RegExp]>([
    ["a file that is not there", "", ["--config", "none.toml"], 78, /none\.toml" does not exist/],
    ["a key that is unknown", "[network_proxy]\nproxy = 1\n", ["--config", "other/config.toml"], 78, /config\.toml:2:1/],
    ["an agent whose path would end a line", '[network_proxy.policy]\nallow_unix_sockets = ["ssh-agent"]\n', ["--config", "other/config.toml"], 78, /SSH_AUTH_SOCK is "\/tmp\/x\\n/],
  ])("is refused for %s", async (_row, text, argv, code, said) => {
    configure(text, path.join(engine.project, "other"));
    expect(await engine.run(["proxy", "seatbelt-profile", ...argv], { SSH_AUTH_SOCK: "/tmp/x\n(allow default)" })).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(said) });
  });
});
