import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { holdBox } from "./held-box.ts";
import { ADDRESS_WALL, NAME_WALL, runBox } from "./netns-box.ts";

// The start of a box with the name wall: what the kernel reports of it, what a further start changes, what ends one.

const NO_IPSET = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };
const PYTHON = "/usr/bin/python3";
const LIST = { allowed: ["github.com", "10.9.8.7:443"], critical: [], standIn: true as const };
const NAME = { ...LIST, spec: { policy: NAME_WALL } };
const ADDRESS = { ...LIST, spec: { policy: ADDRESS_WALL } };

/** The addresses of a name that is not allowed, on ports of the web and another; and those of one that is. */
const NEVER_OPEN = ["93.184.220.34", "2606:2800:220:3::34"].flatMap((address) => ["80", "443", "8443"].map((port) => `${address} ${port}`));
const OPEN_BY_ADDRESS = ["140.82.112.3 443", "2606:50c0:8000::3 443"];

/** Refuses to program NAT and nothing else. */
function refuseNat(tool: string): string {
  return `#!/bin/sh\ntext=$(cat)\ncase "$text" in *"*nat"*) echo "can't initialize table 'nat'" >&2; exit 3 ;; esac\nprintf '%s\\n' "$text" | /run/sbin.real/${tool} "$@"\n`;
}

describe("a start with the name wall", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterAll(() => lab.stop());

  const save = async (tool: string, table: string): Promise<string[]> => (await lab.exec([tool, "-t", table])).stdout.split("\n");

  const who = async (address: string): Promise<string> => (await lab.exec([PYTHON, "-c", WHO, address])).stdout.trim();

  it.each([
    ["IPv4", "iptables-save", 4],
    ["IPv6", "ip6tables-save", 6],
  ])("has the kernel report these rules of %s, ahead of others' and without changing them", async (_case, tool, family) => {
    const iptables = tool.replace("-save", "");
    const foreign = "-A OUTPUT -p tcp -m tcp --dport 443 -j SOMEONE";
    await lab.exec([iptables, "-t", "nat", "-N", "SOMEONE"]);
    await lab.exec([iptables, "-t", "nat", ...foreign.split(" ")]);
    for (let run = 0; run < 2; run += 1) expect(await runBox(lab, NAME)).toMatchObject({ code: 0 });
    const nat = await save(tool, "nat");
    expect(nat.filter((line) => line.startsWith("-A OUTPUT"))).toEqual(["-A OUTPUT -j AGENTBOX-REDIRECT", foreign]);
    expect(nat).toContain(":OUTPUT ACCEPT [0:0]");
    expect(nat.filter((line) => line.startsWith("-A AGENTBOX"))).toEqual([
      "-A AGENTBOX-REDIRECT -m owner --uid-owner 64990 -j RETURN",
      "-A AGENTBOX-REDIRECT -o lo -j RETURN",
      `-A AGENTBOX-REDIRECT -m set --match-set agentbox-literal-${family} dst,dst -j RETURN`,
      `-A AGENTBOX-REDIRECT -m set --match-set agentbox-direct-${family} dst,dst -j RETURN`,
      "-A AGENTBOX-REDIRECT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 64980",
      "-A AGENTBOX-REDIRECT -p tcp -m tcp --dport 443 -j REDIRECT --to-ports 64443",
    ]);
    const filter = await save(tool, "filter");
    expect(filter.filter((line) => line.startsWith("-A AGENTBOX-WEB ")).map((line) => line.slice("-A AGENTBOX-WEB ".length))).toEqual([
      "-m owner --uid-owner 64990 -j RETURN",
      `-m set --match-set agentbox-literal-${family} dst,dst -j RETURN`,
      `-m set --match-set agentbox-direct-${family} dst,dst -j RETURN`,
      "-p tcp -m limit --limit 50/sec --limit-burst 200 -j NFLOG --nflog-prefix agentbox-refused --nflog-group 5",
      "-p tcp -j REJECT --reject-with tcp-reset",
    ]);
    await lab.exec([iptables, "-t", "nat", "-F", "OUTPUT"]);
    await lab.exec([iptables, "-t", "nat", "-X", "SOMEONE"]);
  });

  it("takes the redirect away where addresses alone decide, and leaves what others have of NAT", async () => {
    await lab.exec(["iptables", "-t", "nat", "-A", "OUTPUT", "-d", "127.0.0.11/32", "-p", "udp", "-m", "udp", "--dport", "53", "-j", "DNAT", "--to-destination", "127.0.0.11:40053"]);
    await runBox(lab, NAME);
    expect(await who("140.82.112.3")).toBe("ECONNREFUSED");
    const run = await runBox(lab, ADDRESS);
    expect(run.events.at(-1)).toMatchObject({ event: "ready" });
    for (const tool of ["iptables-save", "ip6tables-save"]) expect((await save(tool, "nat")).join("\n")).not.toContain("AGENTBOX");
    expect((await save("iptables-save", "nat")).filter((line) => line.startsWith("-A"))).toEqual(["-A OUTPUT -d 127.0.0.11/32 -p udp -m udp --dport 53 -j DNAT --to-destination 127.0.0.11:40053"]);
    expect((await save("iptables-save", "filter")).join("\n")).not.toContain("AGENTBOX-WEB");
    expect(await who("140.82.112.3")).toBe("silent");
    await lab.exec(["iptables", "-t", "nat", "-F", "OUTPUT"]);
  });

  it.each([
    ["one with the other, by iptables", {}, [ADDRESS, NAME, ADDRESS, NAME], NEVER_OPEN],
    ["one with the other, by nftables", { replace: NO_IPSET }, [ADDRESS, NAME, ADDRESS, NAME], NEVER_OPEN],
    // What is learned stays in the sets: only that the web is refused past the proxy keeps these closed.
    ["itself, by iptables", {}, [NAME, NAME, NAME], OPEN_BY_ADDRESS],
    ["itself, by nftables", { replace: NO_IPSET }, [NAME, NAME, NAME], OPEN_BY_ADDRESS],
  ] as const)("opens nothing for a moment while it replaces %s", async (_case, replace, runs, targets) => {
    await using arrivals = await countArrivals(lab, targets);
    await runBox(lab, { ...NAME, ...replace });
    const stop = join(mkdtempSync(join(tmpdir(), "agentbox-loop-")), "stop");
    const client = lab.exec([PYTHON, "-c", LOOP, ...targets, stop], { timeoutMs: 60_000 });
    const seen: string[] = [];
    try {
      for (const next of runs) seen.push(String((await runBox(lab, { ...next, ...replace })).code));
    } finally {
      writeFileSync(stop, "");
    }
    const tried = Number((await client).stdout);
    rmSync(dirname(stop), { recursive: true });
    expect(seen).toEqual(runs.map(() => "0"));
    expect(tried).toBeGreaterThan(100);
    expect(await arrivals.count()).toBe(0);
    // From where no wall stands they arrive.
    const sibling = await lab.addBox();
    await sibling.exec([PYTHON, "-c", LOOP, ...targets, "once"]);
    expect(await arrivals.count()).toBe(targets.length);
  });

  it.each([
    ["iptables", {}],
    ["nftables", { replace: NO_IPSET }],
  ] as const)("refuses a connection that begins within one of the proxy's, whose program is gone, by %s", async (name, backend) => {
    const address = "140.82.112.3";
    const port = name === "iptables" ? 20_001 : 20_002;
    const counted = ["-p", "tcp", "-d", address, "--sport", String(port), "--syn"];
    await lab.execInLab(["iptables", "-I", "INPUT", ...counted]);
    const count = async (): Promise<number> => Number(/^\[(\d+):/.exec((await lab.execInLab(["sh", "-c", `iptables-save -c -t filter | grep -- '--sport ${port} '`])).stdout)?.[1]);
    await holdBox(lab, { ...NAME, ...backend }, async (box) => {
      // Only whoever may change the network can leave a connection behind that nobody ends.
      const proxy = ["setpriv", `--reuid=${PROXY_IDS.uid}`, `--regid=${PROXY_IDS.gid}`, "--clear-groups", "--inh-caps=+net_admin", "--ambient-caps=+net_admin"];
      expect((await lab.exec([...proxy, PYTHON, "-c", AWAIT_OPEN, address])).stdout).toBe("open\n");
      const leftBy = await lab.exec([...proxy, PYTHON, "-c", LEAVE, address, String(port)]);
      expect(leftBy).toEqual({ exitCode: 0, stdout: "left\n", stderr: "" });
      expect(await count()).toBe(1);
      expect((await box.exec([PYTHON, "-c", CONTINUE, address, String(port)])).stdout).toBe("ECONNREFUSED\n");
      expect(await count()).toBe(1);
      // A port of its own is led to the proxy, as everything is.
      expect((await box.exec([PYTHON, "-c", CONTINUE, address, String(port + 10)])).stdout).toBe("proxy--tls\n");
    });
    await lab.execInLab(["iptables", "-D", "INPUT", ...counted]);
  });
});

describe("a kernel that cannot redirect (injected)", () => {
  it("keeps the box from starting, with the name of what is missing", async () => {
    await using lab = await startNamespaceLab();
    const run = await runBox(lab, { ...NAME, replace: { "iptables-restore": refuseNat("iptables-restore") }, command: ["echo", "agent"] });
    expect(run).toMatchObject({ code: 70, stdout: "" });
    expect(run.events.at(-1)).toMatchObject({ event: "failed", step: "close", text: expect.stringMatching(/cannot lead the web to the proxy.*modprobe -a xt_REDIRECT nf_nat; or .*enforcement = "address"/s) });
    // Closed all the same, and nothing of NAT is needed where addresses decide.
    expect((await lab.exec([PYTHON, "-c", WHO, "140.82.112.3"])).stdout).toBe("ECONNREFUSED\n");
    expect(await runBox(lab, { ...ADDRESS, replace: { "iptables-restore": refuseNat("iptables-restore") } })).toMatchObject({ code: 0 });
  });

  it("keeps the box from starting where IPv6 is on and lacks it, and not where IPv6 is off", async () => {
    await using lab = await startNamespaceLab();
    const replace = { "ip6tables-restore": refuseNat("ip6tables-restore") };
    const on = await runBox(lab, { ...NAME, replace, command: ["echo", "agent"] });
    expect(on).toMatchObject({ code: 70, stdout: "" });
    expect(on.stderr).toContain("IPv6 is on in this box, but its web cannot be led to the proxy");
    await lab.exec(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"]);
    const off = await runBox(lab, { ...NAME, replace, command: [PYTHON, "-c", WHO, "140.82.112.3"] });
    expect(off).toMatchObject({ code: 0, stdout: "proxy--tls\n" });
    expect(off.stderr).toContain("IPv6 cannot be led to the proxy; IPv6 is switched off in this box");
  });

  it("is noticed when it loses the redirect after it was programmed", async () => {
    await using lab = await startNamespaceLab();
    const forget = `#!/bin/sh\n/run/sbin.real/iptables-save "$@" | sed '/-A AGENTBOX-REDIRECT .*443/d'\n`;
    const run = await runBox(lab, { ...NAME, replace: { "iptables-save": forget }, command: ["echo", "agent"] });
    expect(run).toMatchObject({ code: 70, stdout: "" });
    expect(run.events.at(-1)).toMatchObject({ step: "validation", text: expect.stringContaining("AGENTBOX-REDIRECT (IPv4) has 5 rules, not 6") });
  });
});

/** Counts the connections that arrive at the addresses of these targets: what is seen there was let out, whoever took what was not. */
async function countArrivals(lab: NamespaceLab, targets: readonly string[]): Promise<AsyncDisposable & { count: () => Promise<number> }> {
  const rules = [...new Set(targets.map((target) => target.split(" ")[0] ?? ""))].map((address) => ({ tool: address.includes(":") ? "ip6tables" : "iptables", rule: ["INPUT", "-d", address, "-p", "tcp", "--syn"] }));
  const change = async (op: "-I" | "-D"): Promise<void> => {
    for (const { tool, rule } of rules) await lab.execInLab([tool, op, ...rule]);
  };
  await change("-I");
  return {
    count: async () => {
      const saved = await Promise.all(rules.map(async ({ tool }) => (await lab.execInLab([`${tool}-save`, "-c", "-t", "filter"])).stdout));
      return saved.flatMap((text) => [...text.matchAll(/^\[(\d+):\d+\] -A INPUT -d \S+ -p tcp/gm)]).reduce((sum, [, packets]) => sum + Number(packets), 0);
    },
    [Symbol.asyncDispose]: () => change("-D"),
  };
}

/** Says what an address answers first on 443. */
const WHO = `
import errno, socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET); s.settimeout(2)
try: s.connect((sys.argv[1], 443)); print(s.recv(64).decode() or "ended")
except TimeoutError: print("silent")
except OSError as error: print(errno.errorcode[error.errno])
`;

/** Connects to each of the targets until the file named last is there, or once; a connection that somebody takes is given up. */
const LOOP = `
import os, socket, sys, time
*targets, stop = sys.argv[1:]
count = 0
while True:
    for address, port in (target.split() for target in targets):
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET); s.settimeout(0.5)
        try: s.connect((address, int(port))); s.send(b"?"); s.recv(64)
        except OSError: pass
        s.close(); count += 1
    time.sleep(.002)
    if stop == "once" or os.path.exists(stop): break
print(count)
`;

/** Waits until an address lets its connections in; the tests before have left the lab's server much to close. */
const AWAIT_OPEN = `
import socket, sys, time
for _ in range(100):
  try: socket.create_connection((sys.argv[1], 443), 2).close(); print("open"); break
  except OSError as error: print(error, file=sys.stderr); time.sleep(.2)
`;

/** Makes a connection from a port and forgets it without a word to the other side. */
const LEAVE = `
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", int(sys.argv[2]))); s.connect((sys.argv[1], 443))
s.setsockopt(socket.IPPROTO_TCP, 19, 1); s.close(); print("left")  # TCP_REPAIR
`;

/** Connects from a port that somebody had. */
const CONTINUE = `
import errno, socket, sys
s = socket.socket(); s.settimeout(3); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", int(sys.argv[2])))
try: s.connect((sys.argv[1], 443)); print(s.recv(64).decode())
except TimeoutError: print("timeout")
except OSError as error: print(errno.errorcode[error.errno])
`;
