import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeEngine } from "./fake-engine.ts";

// A start by its configuration, against an engine's client that only plays along. Tests run as root have two containers.
let engine: FakeEngine;

const run = ["run", "--", "true"];
const ready = `case "$*" in *-net) for d in "$HOME"/.agentbox/sessions/*/holder-launch; do echo '{"event":"ready","text":"verified","ms":1}' >"$d/progress.jsonl"; done ;; esac`;

function configure(where: "project" | "home", text: string): void {
  const directory = path.join(where === "project" ? engine.project : engine.home, ".agentbox");
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, "config.toml"), text);
}

/** What the agent's container was told, as it was when it was removed. */
function readSpec(): unknown {
  return JSON.parse(readFileSync(path.join(engine.home, "../fake/agent.json"), "utf8"));
}

beforeEach(() => {
  engine = new FakeEngine();
  engine.answer("start", ready);
  engine.answer("wait", "sleep 30");
  engine.answer("rm", '[ -e "$FAKE/agent.json" ] || cp "$HOME"/.agentbox/sessions/*/box/box.json "$FAKE/agent.json"');
});

afterEach(() => engine.remove());

describe("the user's own configuration", () => {
  test("turns the firewall on and says what the box may reach, uses and publishes", async () => {
    configure("home", '[network]\nallow_hosts = ["example.com:8443"]\ndns = ["192.0.2.53"]\n[box]\nports = ["8080"]\nmemory = "2g"\nenv = { LEVEL = "7" }\n');
    expect(await engine.run(run)).toMatchObject({ code: 0 });
    expect(readSpec()).toMatchObject({ firewall: true, mode: "allowlist", env: { LEVEL: "7" }, policy: { sources: [{ words: [{ text: "example.com:8443" }] }] } });
    const created = engine.calls().filter((call) => call.startsWith("create ")).join("\n");
    expect(created).toMatch(/--publish 127\.0\.0\.1:8080:8080/);
    expect(created).toMatch(/--memory 2g/);
  });

  test("with mode none makes a box without network, without asking for a resolver", async () => {
    configure("home", '[network]\nmode = "none"\n');
    expect(await engine.run(run)).toMatchObject({ code: 0 });
    expect(readSpec()).toMatchObject({ firewall: true, mode: "none" });
    expect(engine.calls().some((call) => /^create .*--network none/.test(call))).toBe(true);
  });

  test.each([
    { name: "AGENTBOX_FIREWALL=0", argv: run, env: { AGENTBOX_FIREWALL: "0" } },
    { name: "--full-network", argv: ["run", "--full-network", "--", "true"], env: {} },
  ])("refuses $name where it requires the firewall, and takes it where it does not", async ({ argv, env }) => {
    configure("home", '[network]\ndns = ["192.0.2.53"]\nrequired = true\n');
    const refused = await engine.run(argv, env);
    expect(refused.code).toBe(64);
    expect(refused.stderr).toMatch(/requires the firewall/);
    expect(engine.calls().filter((call) => call.startsWith("create"))).toEqual([]);
    configure("home", '[network]\ndns = ["192.0.2.53"]\n');
    expect((await engine.run(argv, env)).code).toBe(0);
  });

  test.each([
    { name: "a key that is none", text: "[network]\nallow_host = []\n", said: /config\.toml:2.*allow_hosts/s },
    { name: "half a file", text: '[network]\nallow_hosts = ["exa', said: /config\.toml:2/ },
  ])("that holds $name stops the start with 78 and its place", async ({ text, said }) => {
    configure("home", text);
    const outcome = await engine.run(run);
    expect(outcome.code).toBe(78);
    expect(outcome.stderr).toMatch(said);
    expect(engine.calls().filter((call) => call.startsWith("create"))).toEqual([]);
  });
});

describe("a project's configuration", () => {
  test("that widens is refused where nobody can be asked, and nothing is made", async () => {
    configure("project", '[network]\nallow_hosts = ["example.com"]\ndns = ["192.0.2.53"]\n');
    const outcome = await engine.run(run);
    expect(outcome.code).toBe(78);
    expect(outcome.stderr).toMatch(/agentbox policy trust/);
    expect(engine.calls().filter((call) => call.startsWith("create"))).toEqual([]);
  });

  test("that is trusted counts", async () => {
    configure("project", '[network]\nallow_hosts = ["example.com"]\ndns = ["192.0.2.53"]\n');
    await engine.run(["policy", "trust"]);
    expect(await engine.run(run)).toMatchObject({ code: 0 });
    expect(readSpec()).toMatchObject({ policy: { sources: [{ words: [{ text: "example.com" }] }] } });
  });

  test("that is not trusted is shown by a dry run, which refuses nothing", async () => {
    configure("project", '[network]\nallow_hosts = ["example.com"]\ndns = ["192.0.2.53"]\n');
    const outcome = await engine.run(["run", "--dry-run", "--", "true"]);
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toMatch(/\.agentbox\/config\.toml \(NOT TRUSTED/);
  });
});

/** The control program of the box: keeps the request and gives this reply. */
function renderAnswer(reply: object): string {
  return `cat >>"$FAKE/requests"; echo >>"$FAKE/requests"; echo '${JSON.stringify(reply)}'; exit 0`;
}

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await check()) return;
    await sleep(50);
  }
  throw new Error("it never came true");
}

async function read(name: string): Promise<string> {
  return (await engine.runShell(`cat ${name} 2>/dev/null`)).stdout;
}

describe("a configuration that changes while a box runs", () => {
  const status = { version: 2, since: 1, degraded: [], learned: { names: 0, addresses: 0 }, proxyRestarts: 0 };
  const wait = 'case "$*" in *-net) ;; *) for i in $(seq 300); do [ ! -e "$FAKE/over" ] || exit 0; sleep 0.05; done ;; esac';
  const base = '[network]\ndns = ["192.0.2.53"]\n';

  async function startAndChange(text: string): Promise<() => Promise<unknown>> {
    configure("home", base);
    engine.answer("start", `${ready}; ${wait}`);
    const { outcome } = engine.start(run);
    await engine.awaitCall("start --attach");
    configure("home", text);
    return async () => {
      await engine.runShell(': >"$FAKE/over"');
      return await outcome;
    };
  }

  test("goes to the box as a whole, and into what the agent may read", async () => {
    engine.answer("exec", renderAnswer({ ok: true, status, added: ["new.example.com"], removed: [] }));
    const end = await startAndChange(`${base}allow_hosts = ["new.example.com"]\n`);
    await until(async () => (await read("~/.agentbox/sessions/*/box/policy.json")).includes("new.example.com"));
    expect(JSON.parse(await read('"$FAKE/requests"'))).toMatchObject({ op: "replace", document: { sources: [{ words: [{ text: "new.example.com" }] }] } });
    expect(engine.calls().find((call) => call.startsWith("exec"))).toMatch(/^exec --interactive --user 64991:64990 agentbox-\S+ \/usr\/bin\/env --ignore-environment \/usr\/local\/bin\/node --disable-sigusr1 \/usr\/local\/lib\/agentbox\/control\.mjs$/);
    expect(await read("~/.agentbox/sessions/*/status.json")).toBe("");
    expect(await end()).toMatchObject({ code: 0 });
  });

  test("is sent again to a box that does not answer yet", async () => {
    engine.answer("exec", 'echo "the keeper cannot be reached" >&2; exit 69');
    const end = await startAndChange(`${base}allow_hosts = ["new.example.com"]\n`);
    await until(async () => /the keeper cannot be reached/.test(await read("~/.agentbox/sessions/*/status.json")));
    engine.answer("exec", renderAnswer({ ok: true, status, added: [], removed: [] }));
    await until(async () => (await read("~/.agentbox/sessions/*/status.json")) === "");
    expect(await read("~/.agentbox/sessions/*/box/policy.json")).toContain("new.example.com");
    expect(await end()).toMatchObject({ code: 0 });
  });

  test.each([
    { name: "that is broken", text: `${base}allow_hosts = ["new.exam`, reply: { ok: true, status, added: [], removed: [] }, said: /config\.toml:3/ },
    { name: "that the box refuses", text: `${base}allow_hosts = ["new.example.com"]\n`, reply: { ok: false, complaints: [{ what: "the proxy did not take it" }], status }, said: /the proxy did not take it/ },
    { name: "that wants another network", text: '[network]\nmode = "full"\n', reply: { ok: true, status, added: [], removed: [] }, said: /another network/ },
  ])("and one $name leaves the old policy, and doctor says so until it is right again", async ({ text, reply, said }) => {
    engine.answer("exec", renderAnswer(reply));
    const end = await startAndChange(text);
    await until(async () => said.test(await read("~/.agentbox/sessions/*/status.json")));
    expect(await read("~/.agentbox/sessions/*/box/policy.json")).not.toContain("new.example.com");
    expect((await engine.run(["doctor", "--engine", "docker"])).stdout).toMatch(said);
    engine.answer("exec", renderAnswer({ ok: true, status, added: [], removed: [] }));
    configure("home", `${base}allow_hosts = ["right.example.com"]\n`);
    await until(async () => (await read("~/.agentbox/sessions/*/status.json")) === "");
    expect(await read("~/.agentbox/sessions/*/box/policy.json")).toContain("right.example.com");
    expect(await end()).toMatchObject({ code: 0 });
  });
});

/** The image that was looked for last. */
function findTag(calls: readonly string[]): string | undefined {
  return calls.findLast((call) => call.startsWith("image inspect"))?.split(" ").at(-1);
}

describe("what a configuration says about the image", () => {
  test("makes the image of its boxes, in a start as in a rebuild, and is not remembered for others", async () => {
    configure("home", '[build]\npackages = ["jq"]\nagents = []\n');
    await engine.run(run, { AGENTBOX_FIREWALL: "0" });
    const configured = findTag(engine.calls());
    expect(JSON.parse(readFileSync(path.join(engine.home, ".agentbox/image.json"), "utf8"))).toMatchObject({ packages: [] });
    configure("home", "");
    await engine.run(run, { AGENTBOX_FIREWALL: "0" });
    expect(findTag(engine.calls())).not.toBe(configured);
    configure("home", '[build]\npackages = ["jq"]\n');
    await engine.run(["--rebuild"]);
    expect(engine.calls().findLast((call) => /^(?:buildx )?build /.test(call))).toContain("PACKAGES=jq");
    expect(JSON.parse(readFileSync(path.join(engine.home, ".agentbox/image.json"), "utf8"))).toMatchObject({ packages: [] });
  });
});
