import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { describeSelf } from "../../../cli/session/owner.ts";
import { FakeEngine } from "./fake-engine.ts";

// Changes of running boxes, against an engine's client that only plays along: what it is told is what a box would get.
let engine: FakeEngine;

const status = { version: 2, since: 1, degraded: [], learned: { names: 0, addresses: 0 }, proxyRestarts: 0 };
const taken = JSON.stringify({ ok: true, status, added: [], removed: [] });
const refused = JSON.stringify({ ok: false, complaints: [{ what: "the set is full" }], status: null });

beforeEach(() => {
  engine = new FakeEngine();
  engine.answer("container-inspect", `echo '{"Status":"running","ExitCode":0,"Error":"","OOMKilled":false}'; exit 0`);
  answerExec(`echo '${taken}'`);
});

afterEach(() => engine.remove());

/** Every request is kept as one line, whole. */
function answerExec(shell: string): void {
  engine.answer("exec", `line=$(cat); printf '%s\\n' "$line" >>"$FAKE/requests"; ${shell}; exit 0`);
}

/** Puts a session there as a start leaves it while its box runs. */
async function openSession(id: string): Promise<string> {
  const directory = path.join(engine.home, ".agentbox/sessions", id);
  mkdirSync(path.join(directory, "box"), { recursive: true });
  mkdirSync(path.join(directory, "log"));
  const record = {
    version: 2, id, owner: await describeSelf(), engine: "docker", container: `agentbox-${id}`, topology: "container", holder: null, firewall: true,
    project: engine.project, agent: "claude", started: "2026-11-21T04:00:00.000Z", ended: null,
  };
  writeFileSync(path.join(directory, "session.json"), JSON.stringify(record));
  return directory;
}

function configure(text: string, where: "project" | "home" = "project"): void {
  const directory = path.join(where === "project" ? engine.project : engine.home, ".agentbox");
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, "config.toml"), text);
}

const readProjectFile = (): string => readFileSync(path.join(engine.project, ".agentbox/config.toml"), "utf8");

async function readRequests(): Promise<{ document: { sources: { label: string; words: { text: string; until?: number }[] }[]; blocks: { label: string; words: { text: string }[] }[] } }[]> {
  const { stdout } = await engine.runShell('cat "$FAKE/requests" 2>/dev/null');
  return stdout.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

function wordsOf(list: readonly { label: string; words: readonly { text: string }[] }[] | undefined, label: string): string[] {
  return (list ?? []).filter((one) => one.label === label).flatMap(({ words }) => words.map(({ text }) => text));
}

describe("policy allow and deny while a box runs", () => {
  test("the box gets the whole policy with the host, and tells its agent", async () => {
    const directory = await openSession("20261121-040000-aaaaaa");
    const outcome = await engine.run(["policy", "allow", "one.example.com:8443"]);
    expect(outcome).toMatchObject({ code: 0, stdout: "session 20261121-040000-aaaaaa: one.example.com:8443 allowed until the session ends\n" });
    const [request] = await readRequests();
    expect(wordsOf(request?.document.sources, "policy allow")).toEqual(["one.example.com:8443"]);
    expect(engine.calls().find((call) => call.startsWith("exec"))).toMatch(/--user 64991:64990 agentbox-20261121-040000-aaaaaa \/usr\/bin\/env --ignore-environment /);
    expect(readFileSync(path.join(directory, "box/policy.json"), "utf8")).toContain("one.example.com:8443");
  });

  test("a box keeps who decides in it, whatever is configured now", async () => {
    const directory = await openSession("20261121-040000-aaaaaa");
    writeFileSync(path.join(directory, "box/policy.json"), JSON.stringify({ mode: "allowlist", enforcement: "address" }));
    configure('[network]\nenforcement = "name"\n', "home");
    expect((await engine.run(["policy", "allow", "one.example.com"])).code).toBe(0);
    expect(await readRequests()).toMatchObject([{ document: { enforcement: "address" } }]);
    expect(JSON.parse(readFileSync(path.join(directory, "box/policy.json"), "utf8"))).toMatchObject({ enforcement: "address" });
  });

  test("several changes add up, and the later word on a host counts", async () => {
    await openSession("20261121-040000-aaaaaa");
    for (const words of [["allow", "one.example.com"], ["allow", "two.example.com"], ["deny", "one.example.com"]]) expect((await engine.run(["policy", ...words])).code).toBe(0);
    const last = (await readRequests()).at(-1);
    expect(wordsOf(last?.document.sources, "policy allow")).toEqual(["two.example.com"]);
    expect(wordsOf(last?.document.blocks, "policy deny")).toEqual(["one.example.com"]);
  });

  test("several at once lose none of the changes", async () => {
    await openSession("20261121-040000-aaaaaa");
    const hosts = ["a", "b", "c", "d"].map((name) => `${name}.example.com`);
    await Promise.all(hosts.map(async (host) => await engine.run(["policy", "allow", host])));
    expect(wordsOf((await readRequests()).at(-1)?.document.sources, "policy allow").toSorted()).toEqual(hosts);
  });

  test("--once ends by itself, in the box", async () => {
    await openSession("20261121-040000-aaaaaa");
    const before = Date.now();
    await engine.run(["policy", "allow", "--once", "one.example.com"]);
    const [word] = (await readRequests())[0]?.document.sources.find(({ label }) => label === "policy allow")?.words ?? [];
    expect(word?.until).toBeGreaterThanOrEqual(before + 60_000);
  });

  test("a box that refuses goes on as before, and so does its record; the others take the change", async () => {
    const [one, two] = await Promise.all([openSession("20261121-040000-aaaaaa"), openSession("20261121-040000-bbbbbb")]);
    answerExec(`case "$*" in *bbbbbb*) echo '${refused}' ;; *) echo '${taken}' ;; esac`);
    const outcome = await engine.run(["policy", "allow", "one.example.com"]);
    expect(outcome).toMatchObject({ code: 70, stdout: expect.stringContaining("aaaaaa: one.example.com allowed"), stderr: expect.stringContaining("bbbbbb goes on as before: the set is full") });
    expect([one, two].map((directory) => existsSync(path.join(directory, "overlay.json")))).toEqual([true, false]);
  });

  test("a box that does not answer is told, and nothing is recorded", async () => {
    const directory = await openSession("20261121-040000-aaaaaa");
    answerExec("echo no such container >&2");
    const outcome = await engine.run(["policy", "allow", "one.example.com"]);
    expect(outcome).toMatchObject({ code: 70, stdout: "", stderr: expect.stringMatching(/session 20261121-040000-aaaaaa goes on as before: .*did not answer/) });
    expect(outcome.stderr).not.toContain("STILL OPEN");
    expect(existsSync(path.join(directory, "overlay.json"))).toBe(false);
  });

  test.each([
    { name: "does not answer", exec: "echo no such container >&2", why: /did not answer/, argv: ["policy", "deny", "one.example.com"] },
    { name: "refuses", exec: `echo '${refused}'`, why: /the set is full/, argv: ["policy", "deny", "one.example.com"] },
    { name: "does not answer to what the file says from now on", exec: "echo no such container >&2", why: /did not answer/, argv: ["policy", "deny", "--always", "one.example.com"] },
  ])("a denied host that stays open in a box that $name is called so, with what ends the box", async ({ exec, why, argv }) => {
    await openSession("20261121-040000-aaaaaa");
    answerExec(exec);
    const outcome = await engine.run(argv);
    expect(outcome.code).toBe(70);
    expect(outcome.stdout).not.toContain("denied");
    expect(outcome.stderr).toMatch(/one\.example\.com STILL OPEN in session 20261121-040000-aaaaaa.*Ctrl-C.*`docker rm -f agentbox-20261121-040000-aaaaaa`/);
    expect(outcome.stderr).toMatch(why);
  });

  test("a box that is busy is waited for longer when a host is to be denied", { timeout: 120_000 }, async () => {
    await openSession("20261121-040000-aaaaaa");
    answerExec(`sleep 17; echo '${taken}'`);
    expect(await engine.run(["policy", "deny", "one.example.com"])).toMatchObject({ code: 0, stdout: expect.stringContaining("one.example.com denied") });
  });

  test("without a running box it says how to write it down", async () => {
    expect(await engine.run(["policy", "allow", "one.example.com"])).toMatchObject({ code: 64, stderr: expect.stringContaining("agentbox policy allow --always one.example.com") });
  });

  test.each([
    { name: "a file that nobody agreed to", text: '[network]\nallow_hosts = ["evil.example.com"]\n', said: /you did not agree to this file.*evil\.example\.com.*policy trust/ },
    { name: "a broken file", text: '[network]\nallow_hosts = ["one.exam\n', said: /config\.toml:2/ },
  ])("$name changes no box", async ({ text, said }) => {
    await openSession("20261121-040000-aaaaaa");
    configure(text);
    expect(await engine.run(["policy", "allow", "one.example.com"])).toMatchObject({ code: 78, stderr: expect.stringMatching(said) });
    expect(await readRequests()).toEqual([]);
  });

  test("a host that the user's own file blocks stays refused, with the block and its line", async () => {
    await openSession("20261121-040000-aaaaaa");
    configure('[network]\nblock_hosts = ["one.example.com"]\n', "home");
    expect(await engine.run(["policy", "allow", "one.example.com"])).toMatchObject({ code: 70, stderr: expect.stringMatching(/stays refused.*~\/\.agentbox\/config\.toml:2/) });
    configure("[network]\n");
    expect(await engine.run(["policy", "allow", "--always", "one.example.com"])).toMatchObject({ code: 78, stderr: expect.stringMatching(/stays refused/) });
    expect(readProjectFile()).toBe("[network]\n");
    expect(await readRequests()).toEqual([]);
  });
});

test("an address that hands out credentials is opened as its owner says, and warned of", async () => {
  await openSession("20261121-040000-aaaaaa");
  expect(await engine.run(["policy", "allow", "169.254.169.254:80"])).toMatchObject({ code: 0, stdout: expect.stringContaining("allowed until the session ends"), stderr: expect.stringContaining("metadata service, which hands out the machine's credentials") });
  expect((await engine.run(["policy", "allow", "one.example.com"])).stderr).not.toContain("metadata");
});

describe("policy trust", () => {
  test("has the boxes that run take what was agreed to, with their own changes, and tells of each", async () => {
    const [one] = await Promise.all([openSession("20261121-040000-aaaaaa"), openSession("20261121-040000-bbbbbb")]);
    await engine.run(["policy", "deny", "two.example.com"]);
    configure('[network]\nallow_hosts = ["one.example.com"]\n');
    answerExec(`case "$*" in *bbbbbb*) echo '${refused}' ;; *) echo '${taken}' ;; esac`);
    const outcome = await engine.run(["policy", "trust"]);
    expect(outcome).toMatchObject({ code: 70, stdout: expect.stringContaining("session 20261121-040000-aaaaaa: enforces .agentbox/config.toml\n"), stderr: expect.stringContaining("bbbbbb goes on as before: the set is full") });
    const last = (await readRequests()).at(-1);
    expect(wordsOf(last?.document.sources, ".agentbox/config.toml")).toEqual(["one.example.com"]);
    expect(wordsOf(last?.document.blocks, "policy deny")).toEqual(["two.example.com"]);
    expect(readFileSync(path.join(one, "box/policy.json"), "utf8")).toContain("one.example.com");
  });

  test("changes no box where the file now wants another network", async () => {
    await openSession("20261121-040000-aaaaaa");
    configure('[network]\nmode = "full"\n');
    expect(await engine.run(["policy", "trust"])).toMatchObject({ code: 0, stderr: expect.stringMatching(/boxes that run keep the network.*start them anew/) });
    expect(await readRequests()).toEqual([]);
  });
});

describe("--always", () => {
  const commented = '# ours\n[network]\nallow_hosts = [\n  "a.example.com", # first\n]\n';

  test("edits the file in place, keeps its comments, and is trusted as what was trusted before", async () => {
    configure(commented);
    await engine.run(["policy", "trust"]);
    await openSession("20261121-040000-aaaaaa");
    expect(await engine.run(["policy", "allow", "--always", "b.example.com"])).toMatchObject({ code: 0 });
    expect(readProjectFile()).toMatch(/^# ours\n[^]*"a\.example\.com", # first\n[^]*"b\.example\.com"/);
    expect((await engine.run(["policy", "check"])).code).toBe(0);
    expect(wordsOf((await readRequests()).at(-1)?.document.sources, ".agentbox/config.toml")).toEqual(["a.example.com", "b.example.com"]);
  });

  test.each([["policy", "allow", "--always", "b.example.com"], ["policy", "deny", "--always", "b.example.com"], ["policy", "apply", "rust"]])("writes nothing into a file that nobody agreed to: %s %s %s", async (...argv) => {
    configure(commented);
    await openSession("20261121-040000-aaaaaa");
    expect(await engine.run(argv)).toMatchObject({ code: 78, stdout: "", stderr: expect.stringMatching(/you did not agree to this file.*agentbox policy trust/) });
    expect(readProjectFile()).toBe(commented);
    expect(await engine.run(["policy", "check"])).toMatchObject({ code: 78, stdout: expect.stringMatching(/problem .*a\.example\.com/) });
    expect(await readRequests()).toEqual([]);
  });

  test("takes a host from one list when it goes into the other", async () => {
    configure(commented);
    await engine.run(["policy", "trust"]);
    await engine.run(["policy", "deny", "--always", "a.example.com"]);
    expect(readProjectFile()).toMatch(/block_hosts = \["a\.example\.com"\]/);
    expect(readProjectFile()).not.toMatch(/"a\.example\.com", # first/);
    await engine.run(["policy", "allow", "--always", "a.example.com"]);
    expect(readProjectFile()).not.toMatch(/block_hosts = \["a/);
  });

  test("edits the user's own file where that is the one that counts", async () => {
    configure("[network]\n", "home");
    expect(await engine.run(["policy", "allow", "--always", "b.example.com"])).toMatchObject({ code: 0, stdout: "~/.agentbox/config.toml changed\n" });
    expect(existsSync(path.join(engine.project, ".agentbox"))).toBe(false);
  });

  test("adds a preset", async () => {
    configure("[network]\n");
    expect(await engine.run(["policy", "apply", "rust"])).toMatchObject({ code: 0 });
    expect(readProjectFile()).toBe('[network]\npresets = ["rust"]\n');
    expect((await engine.run(["policy", "show"])).stdout).toMatch(/presets: rust/);
  });
});
