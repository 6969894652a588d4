import { expect, test } from "vitest";
import { parseEnvOptions } from "../../../../cli/environment/env-options.ts";
import { planEnvironment, readEnvironment, type EnvironmentFacts } from "../../../../cli/environment/environment.ts";
import type { HostRunner } from "../../../../cli/environment/host-command.ts";
import { renderTerminal } from "../../../../cli/environment/terminal.ts";
import { ConfigError, renderComplaint, UsageError } from "../../../../policy/errors.ts";

const facts: EnvironmentFacts = { dotEnv: null, options: [], identity: { name: null, email: null }, terminal: { TERM: "xterm" } };
const base = { facts, profile: {}, boxUid: 1000, siteCa: false, sshKey: false, roots: [], gitConfig: [], web: undefined };
const dotEnv = (values: Record<string, string>) => ({ file: "/w/p/.env", variables: Object.entries(values).map(([name, value], at) => ({ name, value, line: at + 1 })) });
const noGit: HostRunner = async () => ({ exitCode: null, stdout: "", stderr: "" });

test("nothing of a poisoned host environment comes in but the kind of terminal and clock", async () => {
  const poison = ["NODE_OPTIONS", "LD_PRELOAD", "BASH_ENV", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "HTTPS_PROXY", "PATH", "HOME", "USER", "LANG", "GIT_AUTHOR_NAME", "EDITOR", "DOCKER_HOST", "NODE_EXTRA_CA_CERTS"];
  const hostEnv = Object.fromEntries([...poison, "TERM", "COLORTERM", "TZ"].map((name) => [name, `poison ${name}\n`]));
  const read = await readEnvironment({ projectPath: "/nonexistent", ignoreDotEnv: true, options: [], hostEnv, run: noGit });
  const { env } = planEnvironment({ ...base, facts: read });
  expect(JSON.stringify(env)).not.toContain("poison");
  expect(env).toMatchObject({ HOME: "/home/agent", USER: "agent", LOGNAME: "agent", SHELL: "/bin/bash", LANG: "C.UTF-8", TERM: "dumb" });
});

test("the system's directories come first in PATH", () => {
  const path = planEnvironment(base).env["PATH"]?.split(":") ?? [];
  expect(path.findIndex((one) => one.startsWith("/home"))).toBeGreaterThan(path.indexOf("/bin"));
});

test("a later source wins: the box, the profile, .env, -e", () => {
  const options = [{ name: "C", value: "option" }, { name: "PATH", value: "/x" }];
  const all = { ...facts, dotEnv: dotEnv({ B: "file", C: "file", LANG: "de_DE.UTF-8" }), options };
  const { env } = planEnvironment({ ...base, facts: all, profile: { A: "profile", B: "profile", LANG: "profile" } });
  expect(env).toMatchObject({ A: "profile", B: "file", C: "option", LANG: "de_DE.UTF-8", PATH: "/x" });
});

test("what steers AgentBox or is fixed is ignored in .env, with one notice and without values", () => {
  const file = dotEnv({ AGENTBOX_FIREWALL: "0", agentbox_x: "0", PATH: "/evil", HOME: "/evil", LD_PRELOAD: "data", OK: "1" });
  const { env, notices } = planEnvironment({ ...base, facts: { ...facts, dotEnv: file } });
  expect(env).toMatchObject({ HOME: "/home/agent", LD_PRELOAD: "data", OK: "1" });
  expect(Object.keys(env).filter((name) => /agentbox/i.test(name))).toEqual([]);
  expect(notices).toEqual(['ignored in "/w/p/.env": AGENTBOX_FIREWALL, agentbox_x, PATH, HOME (the box sets them itself)']);
});

test("a host user who is root has uid 0 in the box and says so to agents that refuse it", () => {
  expect(planEnvironment({ ...base, boxUid: 0, sshKey: true }).env).toMatchObject({ USER: "root", IS_SANDBOX: "1", GIT_SSH_COMMAND: "ssh -F /home/agent/.ssh/config" });
  expect(planEnvironment({ ...base, sshKey: true }).env).not.toHaveProperty("IS_SANDBOX");
});

test("the site's authority reaches every program that brings its own list", () => {
  const { env } = planEnvironment({ ...base, siteCa: true });
  for (const name of ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "npm_config_cafile"]) {
    expect(env[name]).toBe("/etc/ssl/certs/ca-certificates.crt");
  }
  expect(planEnvironment(base).env).not.toHaveProperty("SSL_CERT_FILE");
});

test("git gets the identity, trusts directories of another owner, and takes the workspace's settings", () => {
  const roots = [{ path: "/w/p", owner: 501 }, { path: "/w/own", owner: 1000 }];
  const { env } = planEnvironment({ ...base, facts: { ...facts, identity: { name: "Ada", email: "a@example.com" } }, roots, gitConfig: [{ name: "gc.x", value: "never" }] });
  expect(env).toMatchObject({
    GIT_AUTHOR_NAME: "Ada",
    GIT_COMMITTER_EMAIL: "a@example.com",
    GIT_CONFIG_COUNT: "2",
    GIT_CONFIG_KEY_0: "safe.directory",
    GIT_CONFIG_VALUE_0: "/w/p",
    GIT_CONFIG_KEY_1: "gc.x",
    GIT_CONFIG_VALUE_1: "never",
  });
});

test("more than a program can be started with is refused", () => {
  const values = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`V${at}`, "x".repeat(120_000)]));
  expect(() => planEnvironment({ ...base, facts: { ...facts, dotEnv: dotEnv(values) } })).toThrow(ConfigError);
});

test("-e takes a value, an empty value, or the caller's own; later ones win later", () => {
  const { variables, complaints } = parseEnvOptions(["A=1=2", "B=", "C", "A=3"], { C: "host" });
  expect(complaints).toEqual([]);
  expect(variables).toEqual([{ name: "A", value: "1=2" }, { name: "B", value: "" }, { name: "C", value: "host" }, { name: "A", value: "3" }]);
});

test("a wrong -e is told as every other mistake of the command line, without a place", () => {
  const { complaints } = parseEnvOptions(["NOPE", "AGENTBOX_X=1", "A=\0"], {});
  expect(complaints.map(renderComplaint)).toEqual([
    "-e NOPE takes the value from your environment, where it is not set; expected -e NOPE=VALUE; fix: write the value, or export the variable first",
    expect.stringMatching(/^-e AGENTBOX_X would reach the agent/),
    expect.stringMatching(/^the value of A holds a NUL byte/),
  ]);
});

test("every wrong -e is named, and none of the values", async () => {
  const options = ["1A=s3cret", "UNSET", "AGENTBOX_FIREWALL=0", "N=s3cret\0", `L=${"s3cret".repeat(30_000)}`, ""];
  const { complaints } = parseEnvOptions(options, {});
  expect(complaints).toHaveLength(6);
  expect(JSON.stringify(complaints)).not.toContain("s3cret");
  await expect(readEnvironment({ projectPath: "/nonexistent", ignoreDotEnv: true, options, hostEnv: {}, run: noGit })).rejects.toThrow(UsageError);
});

const terminals: [string, NodeJS.ProcessEnv, Record<string, string>][] = [
  ["keeps a terminal that the box knows", { TERM: "tmux-256color", COLORTERM: "truecolor" }, { TERM: "tmux-256color", COLORTERM: "truecolor", TZ: "Europe/Berlin" }],
  ["takes a newer terminal for xterm", { TERM: "xterm-kitty" }, { TERM: "xterm-256color", TZ: "Europe/Berlin" }],
  ["has no terminal where the host has none", {}, { TERM: "dumb", TZ: "Europe/Berlin" }],
  ["prefers the caller's time zone", { TERM: "xterm", TZ: "Asia/Tokyo" }, { TERM: "xterm", TZ: "Asia/Tokyo" }],
  ["leaves out what is no name", { TERM: "a b", COLORTERM: "$(x)", TZ: ":/etc/localtime" }, { TERM: "dumb", TZ: "Europe/Berlin" }],
];
test.each(terminals)("%s", (_name, hostEnv, expected) => expect(renderTerminal(hostEnv, "Europe/Berlin")).toEqual(expected));
