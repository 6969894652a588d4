import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { DnsBehaviours } from "../../lab/control-schema.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type BoxRun, runBox } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// Cases 2, 3, 4, 6, 8, 9, 23 and 25 as far as they concern the entrypoint, on a real kernel.

const CRITICAL = { allowed: ["github.com", "api.anthropic.com"], critical: ["github.com", "api.anthropic.com"] };

describe("a start", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it("runs the command with no capability, no new privileges, default signals and blocking descriptors", async () => {
    const script = `grep -E '^(Cap|NoNewPrivs|SigIgn|SigBlk|Uid|Gid|Groups)' /proc/self/status
      for fd in 0 1 2; do grep flags /proc/self/fdinfo/$fd; done; grep -E '^(Cap|NoNewPrivs)' /proc/self/status | sort -u`;
    const run = await runBox(lab, { ...CRITICAL, command: ["sh", "-c", script] });
    expect(run.code).toBe(0);
    for (const set of ["Inh", "Prm", "Eff", "Bnd", "Amb"]) expect(run.stdout).toContain(`Cap${set}:\t0000000000000000`);
    expect(run.stdout).toContain("NoNewPrivs:\t1");
    expect(run.stdout).toContain("SigIgn:\t0000000000000000");
    expect(run.stdout).toContain("SigBlk:\t0000000000000000");
    expect(run.stdout).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
    expect(run.stdout).toMatch(/^Groups:\t ?$/m);
    const flags = [...run.stdout.matchAll(/^flags:\t([0-7]+)$/gm)].map((match) => Number.parseInt(match[1] ?? "", 8));
    expect(flags).toHaveLength(3);
    const O_NONBLOCK = 0o4000;
    for (const flag of flags) expect(flag & O_NONBLOCK).toBe(0);
  });

  it("says ready only after the validation, and the command runs after that", async () => {
    const run = await runBox(lab, CRITICAL);
    expect(run.events.filter(({ event }) => event === "done" || event === "ready").map(nameOf)).toEqual([
      "kernel",
      "close",
      "allowlist",
      "resolver",
      "resolving",
      "validation",
      "ready",
    ]);
  });

  it("passes the exit code of the command on", async () => {
    expect((await runBox(lab, { ...CRITICAL, command: ["sh", "-c", "exit 37"] })).code).toBe(37);
  });

  it("hands arguments over unchanged", async () => {
    const words = ["two words", "it's", '"', "$(id)", "`id`", "a\nb", "-x", "--", "", "*", "K=V", "ü"];
    const run = await runBox(lab, { ...CRITICAL, command: [process.execPath, "-e", "console.log(JSON.stringify(process.argv.slice(1)))", "--", ...words] });
    expect(JSON.parse(run.stdout)).toEqual(words);
  });

  it("starts a program whose path holds an equals sign", async () => {
    const run = await runBox(lab, { ...CRITICAL, replace: {}, command: ["sh", "-c", "ln -sf /bin/echo /tmp/a=b.$$ && exec /tmp/a=b.$$ ran"] });
    expect(run.stdout).toBe("ran\n");
    const direct = await runBox(lab, { ...CRITICAL, command: ["/proc/self/root/bin/../bin/nothing=here"] });
    expect(direct.code).toBe(127);
  });

  it("acts on no variable of the agent before it is the agent", async () => {
    const run = await runBox(lab, {
      ...CRITICAL,
      spec: { env: { PATH: "/nowhere", LD_PRELOAD: "/tmp/evil.so", NODE_OPTIONS: "--require=/tmp/evil.js", BASH_ENV: "/tmp/evil.sh", AGENTBOX_FIREWALL: "0" } },
      command: ["/usr/bin/env"],
    });
    expect(run.code).toBe(0);
    expect(run.stdout.split("\n").toSorted()).toEqual(
      ["", "AGENTBOX_FIREWALL=0", "BASH_ENV=/tmp/evil.sh", "LD_PRELOAD=/tmp/evil.so", "NODE_OPTIONS=--require=/tmp/evil.js", "PATH=/nowhere"].toSorted(),
    );
    // The dynamic loader complains once for each program that it starts: that must be the agent alone.
    expect(run.stderr.match(/LD_PRELOAD/g)).toHaveLength(1);
  });

  const broken: [string, DnsBehaviours, string][] = [
    ["does not exist", { "github.com": { rcode: "NXDOMAIN" } }, "does not exist"],
    ["has no address", { "github.com": { a: [], aaaa: [] } }, "has no address"],
    ["fails", { "github.com": { rcode: "SERVFAIL" } }, "SERVFAIL"],
    ["resolves to a private address only", { "github.com": { a: ["10.0.0.1"], aaaa: ["fd00::1"] } }, "special-purpose"],
  ];
  it.each(broken)("is refused with 69 when a critical name %s", async (_case, behaviour, words) => {
    await lab.control.setDns(behaviour);
    const run = await runBox(lab, { ...CRITICAL, command: ["echo", "agent"] });
    expect(failureOf(run)).toMatchObject({ step: "resolving", exitCode: 69 });
    expect(failureOf(run).text).toContain("github.com:443");
    expect(failureOf(run).text).toContain(words);
    expect(failureOf(run).text).toContain("fix:");
    expect(run).toMatchObject({ code: 69, stdout: "" });
  });

  it("is refused with 69 when a critical service resets connections, and names it", async () => {
    await lab.control.setHosts({ "140.82.112.3": { tcp: "reset" }, "2606:50c0:8000::3": { tcp: "reset" } });
    const run = await runBox(lab, { ...CRITICAL, command: ["echo", "agent"] });
    expect(failureOf(run)).toMatchObject({ step: "validation", exitCode: 69 });
    expect(failureOf(run).text).toContain("github.com:443 does not answer");
    expect(run.stdout).toBe("");
  });

  it("goes on with a warning when another name does not resolve", async () => {
    await lab.control.setDns({ "gitlab.com": { rcode: "NXDOMAIN" } });
    const run = await runBox(lab, { allowed: [...CRITICAL.allowed, "gitlab.com"], critical: CRITICAL.critical });
    expect(run.code).toBe(0);
    expect(run.events).toContainEqual({ event: "warning", step: "resolving", text: expect.stringContaining("gitlab.com") });
  });

  it("retries a resolver that loses questions", async () => {
    await lab.control.setDns({ "github.com": { a: ["140.82.112.3"], silent: true, failFirst: 1 } });
    expect((await runBox(lab, CRITICAL)).code).toBe(0);
  });

  it("takes one address for two names, duplicate answers, CNAME chains and address-like aliases", async () => {
    const names = ["shared-a", "shared-b", "duplicate", "chain", "literal-alias"].map((name) => `${name}.lab-names.example`);
    const targets = ["tcp:93.184.216.5:443", "tcp:93.184.216.9:443", "tcp:93.184.216.8:443", "tcp:93.184.216.6:443"];
    const run = await runBox(lab, { allowed: names, command: reachArgv(targets) });
    expect(run.code).toBe(0);
    expect(parseOutcomes(run.stdout).map(({ outcome }) => outcome)).toEqual(targets.map(() => "connected"));
  });

  it("is refused with 77 and the capability's name when the engine withholds NET_ADMIN", async () => {
    const run = await runBox(lab, { ...CRITICAL, capabilities: "+kill,+setgid,+setuid,+setpcap,+net_raw", command: ["echo", "agent"] });
    expect(failureOf(run)).toMatchObject({ step: "kernel", exitCode: 77 });
    expect(failureOf(run).text).toContain("NET_ADMIN");
    expect(run).toMatchObject({ code: 77, stdout: "" });
  });

  it.each([
    ["on in the specification and off outside", "0"],
    ["on in the specification and not set outside", ""],
  ])("is refused when the firewall is %s", async (_case, firewall) => {
    const run = await runBox(lab, { ...CRITICAL, firewall, command: ["echo", "agent"] });
    expect(run).toMatchObject({ code: 70, stdout: "" });
  });

  it.each([
    ["an expansion", "ALLOWED_SERVICES=(\n  $(id)\n)\nCRITICAL_SERVICES=()\n", "allowlists/services.sh:2"],
    ["a URL with a path", 'ALLOWED_SERVICES=(\n  "a.example/b"\n)\nCRITICAL_SERVICES=()\n', "allowlists/services.sh:2"],
    ["a critical service that is not allowed", 'ALLOWED_SERVICES=("a.example")\nCRITICAL_SERVICES=("b.example")\n', "allowlists/services.sh:2"],
  ])("is refused with 78 and the line when the list holds %s", async (_case, text, place) => {
    const run = await runBox(lab, { services: text, command: ["echo", "agent"] });
    expect(failureOf(run)).toMatchObject({ step: "allowlist", exitCode: 78 });
    expect(failureOf(run).text).toContain(place);
    expect(run.stdout).toBe("");
  });

  it.each([
    ["missing", null],
    ["no JSON", "{"],
    ["of another version", '{"version":2}'],
  ])("is refused with 78 when its specification is %s", async (_case, specText) => {
    const run = await runBox(lab, { specText, command: ["echo", "agent"] });
    expect(failureOf(run)).toMatchObject({ step: "start", exitCode: 78 });
    expect(failureOf(run).text).toContain("/run/agentbox/box.json");
    expect(run.stdout).toBe("");
  });

  it("leaves a box with mode none without any network, and starts it", async () => {
    const run = await runBox(lab, { spec: { mode: "none" }, command: reachArgv(["tcp:140.82.112.3:443", "udp:172.30.0.1:53"]) });
    expect(run.code).toBe(0);
    expect(parseOutcomes(run.stdout).map(({ outcome }) => outcome)).toEqual(["ECONNREFUSED", "EPERM"]);
  });

  it("opens, on a second run, what the new list says and takes away the rest", async () => {
    const targets = ["tcp:93.184.220.34:443", "tcp:93.184.220.35:443"];
    const first = await runBox(lab, { allowed: ["example.com"], command: reachArgv(targets) });
    expect(parseOutcomes(first.stdout).map(({ outcome }) => outcome)).toEqual(["connected", "ECONNREFUSED"]);
    const second = await runBox(lab, { allowed: ["example.net"], command: reachArgv(targets) });
    expect(parseOutcomes(second.stdout).map(({ outcome }) => outcome)).toEqual(["ECONNREFUSED", "connected"]);
    const rules = await lab.exec(["iptables-save", "-t", "filter"]);
    expect(rules.stdout.match(/-j AGENTBOX-OUT$/gm)).toHaveLength(1);
  });

  it("keeps foreign rules and chains, and comes before them", async () => {
    await lab.exec(["iptables", "-t", "nat", "-N", "SOMEONE"]);
    await lab.exec(["iptables", "-N", "SOMEONE"]);
    await lab.exec(["iptables", "-I", "OUTPUT", "-j", "SOMEONE"]);
    await runBox(lab, CRITICAL);
    const filter = (await lab.exec(["iptables-save", "-t", "filter"])).stdout;
    expect(filter.match(/^-A OUTPUT .*/gm)?.slice(0, 2)).toEqual(["-A OUTPUT -j AGENTBOX-OUT", "-A OUTPUT -j SOMEONE"]);
    expect((await lab.exec(["iptables-save", "-t", "nat"])).stdout).toContain(":SOMEONE");
  });

  it("fails no request of a client that loops while the list is applied again and again", async () => {
    await runBox(lab, CRITICAL);
    const stop = join(mkdtempSync(join(tmpdir(), "agentbox-loop-")), "stop");
    const client = lab.exec([process.execPath, "-e", LOOP, stop], { timeoutMs: 150_000 });
    try {
      for (let run = 0; run < 6; run += 1) expect((await runBox(lab, CRITICAL)).code).toBe(0);
    } finally {
      writeFileSync(stop, "");
    }
    const { count, failures } = JSON.parse((await client).stdout);
    rmSync(dirname(stop), { recursive: true });
    expect(failures).toEqual([]);
    expect(count).toBeGreaterThan(100);
  });
});

function nameOf(event: BoxRun["events"][number]): string {
  return "step" in event ? event.step : event.event;
}

function failureOf(run: BoxRun): { step: string; text: string; exitCode: number } {
  const failed = run.events.find((event) => event.event === "failed");
  if (failed?.event !== "failed") throw new Error(`no step failed:\n${run.stderr}`);
  return failed;
}

/** Connects to an allowed and to another address in turns until the file named as its argument is there. */
const LOOP = `
  const { connect } = require("node:net");
  const { existsSync } = require("node:fs");
  const failures = []; let count = 0;
  const attempt = (address, onConnect, onError) => new Promise((resolve) => {
    const socket = connect(443, address);
    socket.once("connect", () => { onConnect(); socket.resetAndDestroy(); resolve(); });
    socket.once("error", (error) => { onError(error); resolve(); });
  });
  (async () => {
    while (!existsSync(process.argv[1])) {
      await attempt("140.82.112.3", () => (count += 1), (error) => failures.push(error.code));
      await attempt("93.184.220.34", () => failures.push("leak"), () => undefined);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    console.log(JSON.stringify({ count, failures }));
  })();
`;
