import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { ADDRESS_WALL, NAME_WALL, readDecisions } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// The kernel's part of the name wall, by both backends: what is led to the proxy, what is left alone, and what stays
// refused where nothing leads. A stand-in answers for the proxy on its own sockets, so that it is seen who took a
// connection; the servers of the lab wait for their clients to speak, but for SSH.

const NO_IPSET = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };
const PYTHON = "/usr/bin/python3";
const ROOT = { uid: 0, gid: 0 };
const BOX = {
  allowed: ["github.com:443,8443", "chain.lab-names.example:80,443", "tcp://altssh.gitlab.com:443", "10.9.8.7:443"],
  critical: [],
  spec: { policy: NAME_WALL },
  standIn: true as const,
};
const TLS = "proxy--tls";
const PLAIN = "proxy--web";
const SSH = expect.stringMatching(/^SSH-2\.0-/);

const LED: readonly (readonly [string, string, string])[] = [
  ["the address of an allowed name on 443", "140.82.112.3:443", TLS],
  ["its IPv6 twin", "[2606:50c0:8000::3]:443", TLS],
  ["the address of an allowed name on 80", "93.184.216.8:80", PLAIN],
  ["its IPv6 twin", "[2606:2800:220:1::8]:80", PLAIN],
  ["the address of a name that is not allowed", "93.184.220.34:443", TLS],
  ["an address of GitHub's ranges, which are open for SSH", "140.82.121.9:443", TLS],
  ["a documentation address", "198.51.100.1:443", TLS],
  ["the metadata address", "169.254.169.254:80", PLAIN],
  ["the gateway", "172.30.0.1:80", PLAIN],
];

const TOLD: readonly (readonly [string, string, string])[] = [
  ["the HTTP proxy", "127.0.0.1:3128", "proxy--http"],
  ["the HTTP proxy over IPv6", "[::1]:3128", "proxy--http"],
  ["the SOCKS proxy", "127.0.0.1:8081", "proxy--socks"],
  ["the SOCKS proxy over IPv6", "[::1]:8081", "proxy--socks"],
];

const DIRECT: readonly (readonly [string, string, unknown])[] = [
  ["an address that the owner wrote", "10.9.8.7:443", "silent"],
  ["a port that is marked as telling no name", "93.184.216.7:443", SSH],
  ["another port of an allowed name", "140.82.112.3:8443", "silent"],
  ["SSH to GitHub", "140.82.121.9:22", SSH],
];

describe.each([
  ["iptables", {}],
  ["nftables", { replace: NO_IPSET }],
])("the name wall in the kernel, by %s", (backend, replace) => {
  let lab: NamespaceLab;
  const found = new Map<string, string>();
  const open = new Map<string, string>();
  const asProxy = new Map<string, string>();
  const unled = new Map<string, string>();
  let decisions: ReturnType<typeof readDecisions> = [];
  let quic: string[] = [];

  beforeAll(async () => {
    lab = await startNamespaceLab();
    const sibling = await lab.addBox();
    const targets = [...LED, ...TOLD, ...DIRECT].map(([, target]) => target);
    const control = await sibling.exec([PYTHON, "-c", WHO, ...targets], { timeoutMs: 30_000 });
    for (const [target, answer] of parseWho(control.stdout)) open.set(target, answer);
    const run = await holdBox(lab, { ...BOX, ...replace }, async (box) => {
      for (const [target, answer] of await askWho(box, targets)) found.set(target, answer);
      quic = await reach(box, ["udp:140.82.112.3:443", "udp:[2606:50c0:8000::3]:443"]);
      for (const [target, answer] of await askWho(box, ["140.82.112.3:443", "93.184.216.8:80", "93.184.220.34:443"], PROXY_IDS)) asProxy.set(target, answer);
      await lab.exec(backend === "iptables" ? ["iptables", "-t", "nat", "-F", "AGENTBOX-REDIRECT"] : ["nft", "flush", "chain", "inet", "agentbox", "nat-output"]);
      if (backend === "iptables") await lab.exec(["ip6tables", "-t", "nat", "-F", "AGENTBOX-REDIRECT"]);
      for (const [target, answer] of await askWho(box, targets)) unled.set(target, answer);
      // The records of packets come by ulogd.
      await new Promise((resolve) => setTimeout(resolve, 1000));
    });
    decisions = readDecisions(run);
  });
  afterAll(() => lab.stop());

  it.each(LED)("leads %s to the proxy", (_case, target, listener) => {
    expect(open.get(target)).toBe("silent");
    expect(found.get(target)).toBe(listener);
  });

  it.each(TOLD)("lets programs that are told of it talk to %s", (_case, target, listener) => {
    expect(open.get(target)).toBe("ECONNREFUSED");
    expect(found.get(target)).toBe(listener);
  });

  it.each(DIRECT)("leaves %s alone", (_case, target, server) => {
    expect(open.get(target)).toEqual(server);
    expect(found.get(target)).toEqual(server);
  });

  it("lets the proxy out by its uid, through the sets and no further", () => {
    expect(Object.fromEntries(asProxy)).toEqual({ "140.82.112.3:443": "silent", "93.184.216.8:80": "silent", "93.184.220.34:443": "ECONNREFUSED" });
  });

  it.each(LED)("refuses %s where nothing leads it to the proxy", (_case, target) => {
    expect(unled.get(target)).toBe("ECONNREFUSED");
  });

  it.each([...TOLD, ...DIRECT])("depends on no redirect for %s", (_case, target, answer) => {
    expect(unled.get(target)).toEqual(answer);
  });

  it("writes down what was refused past the proxy, and QUIC", () => {
    const refused = decisions.filter(({ protocol, action }) => protocol === "address" && action === "deny").map(({ host, port, type }) => `${type} ${host} ${port}`);
    expect(refused).toContain("tcp 140.82.112.3 443");
    expect(refused).toContain("tcp 2606:50c0:8000::3 443");
    expect(refused).toContain("udp 140.82.112.3 443");
    expect(quic).toEqual(["EPERM", "EPERM"]);
  });

  it("leaves the agent's own servers alone, whatever address of the box they are asked at", async () => {
    const { v4, v6 } = lab.boxAddresses;
    const targets = ["127.0.0.1:80", "[::1]:443", `${v4}:80`, `[${v6}]:443`, "127.8.8.8:443"];
    await holdBox(lab, { ...BOX, ...replace }, async (box) => {
      const { stdout } = await box.exec([PYTHON, "-c", `${SERVE}${WHO}`, ...targets]);
      expect(Object.fromEntries(parseWho(stdout))).toEqual(Object.fromEntries(targets.map((target) => [target, "agent"])));
    });
  });

  it("leads the web to the proxy in report mode too, and refuses QUIC, which a box without it lets out", async () => {
    const targets = ["udp:140.82.112.3:443", "udp:93.184.220.34:443", "tcp:93.184.220.34:8443"];
    await holdBox(lab, { ...BOX, spec: { policy: { ...ADDRESS_WALL, report: true } }, ...replace }, async (box) => {
      expect(await reach(box, targets)).toEqual(["connected", "connected", "connected"]);
    });
    await holdBox(lab, { ...BOX, spec: { policy: { ...NAME_WALL, report: true } }, ...replace }, async (box) => {
      expect(await reach(box, targets)).toEqual(["EPERM", "EPERM", "connected"]);
      expect(Object.fromEntries(await askWho(box, ["93.184.220.34:443", "93.184.220.34:80"]))).toEqual({ "93.184.220.34:443": TLS, "93.184.220.34:80": PLAIN });
      // What the proxy lets through it also reaches.
      expect(Object.fromEntries(await askWho(box, ["93.184.220.34:443", "169.254.169.254:80"], PROXY_IDS))).toEqual({ "93.184.220.34:443": "silent", "169.254.169.254:80": "ECONNREFUSED" });
    });
  });

  it("lets nobody have the proxy's ports, nor while it is started again, and the connections of that time are not lost", async () => {
    await holdBox(lab, { ...BOX, ...replace }, async (box) => {
      const steal = async (): Promise<Set<string>> => new Set((await box.exec([PYTHON, "-c", STEAL])).stdout.trim().split("\n"));
      expect(await steal()).toEqual(new Set(["EADDRINUSE"]));
      const killed = box.exec(["sh", "-c", 'pkill -KILL -P "$(pgrep -o -f agentbox-resolver)" && echo killed'], PROXY_IDS);
      expect((await killed).stdout).toBe("killed\n");
      // Only now: what the killed one had accepted ends with it.
      const asked = askWho(box, ["140.82.112.3:443", "127.0.0.1:3128"]);
      expect(await steal()).toEqual(new Set(["EADDRINUSE"]));
      const answers = new Set(await Promise.all([asked, askWho(box, ["140.82.112.3:443", "127.0.0.1:3128"])]).then((all) => all.flatMap((answer) => [...answer.values()])));
      expect(answers).toEqual(new Set([TLS, "proxy--http"]));
    });
  });

  it("lets only the proxy talk to the site's proxy, from where everything can be reached", async () => {
    const upstream = { host: "proxy.corp.example", port: 8443, tls: false };
    const spec = { policy: { ...NAME_WALL, nameWall: { ...NAME_WALL.nameWall, upstream } }, siteProxy: ["93.184.220.34", "2606:2800:220:3::34"] };
    const targets = ["93.184.220.34:8443", "[2606:2800:220:3::34]:8443"];
    await holdBox(lab, { ...BOX, spec, ...replace }, async (box) => {
      expect([...(await askWho(box, targets, PROXY_IDS)).values()]).toEqual(["silent", "silent"]);
      for (const ids of [undefined, ROOT]) expect([...(await askWho(box, targets, ids)).values()]).toEqual(["ECONNREFUSED", "ECONNREFUSED"]);
      expect([...(await askWho(box, ["93.184.220.34:8080", "93.184.220.35:8443"], PROXY_IDS)).values()]).toEqual(["ECONNREFUSED", "ECONNREFUSED"]);
    });
  });
});

async function reach(box: HeldBox, targets: readonly string[]): Promise<string[]> {
  const { stdout } = await box.exec(reachArgv(targets));
  return parseOutcomes(stdout).map(({ outcome }) => outcome);
}

async function askWho(box: HeldBox, targets: readonly string[], ids?: typeof ROOT): Promise<Map<string, string>> {
  const { stdout, stderr } = await box.exec([PYTHON, "-c", WHO, ...targets], ids);
  if (stdout === "") throw new Error(stderr);
  return parseWho(stdout);
}

function parseWho(stdout: string): Map<string, string> {
  return new Map(stdout.trim().split("\n").map((line): [string, string] => [line.split(" ")[0] ?? "", line.split(" ").slice(1).join(" ")]));
}

/** Connects to each HOST:PORT at once and says what it hears from there first, "silent", or why it cannot. */
const WHO = `
import errno, socket, sys
from concurrent.futures import ThreadPoolExecutor
def ask(target):
    host, port = target.rsplit(":", 1)
    try:
        s = socket.create_connection((host.strip("[]"), int(port)), 8)
        s.settimeout(2)
        return s.recv(64).decode().strip() or "ended"
    except TimeoutError: return "silent"
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
with ThreadPoolExecutor(32) as pool:
    for target, answer in zip(sys.argv[1:], pool.map(ask, sys.argv[1:])): print(target, answer)
`;

/** Has servers of the agent on the web's own ports, on every address of the box. */
const SERVE = `
import socket, threading
def serve(family, port):
    s = socket.socket(family); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("", port)); s.listen()
    while True: c = s.accept()[0]; c.send(b"agent"); c.close()
import time
for family in (socket.AF_INET, socket.AF_INET6):
    for port in (80, 443): threading.Thread(target=serve, args=(family, port), daemon=True).start()
time.sleep(0.3)
`;

/** Tries to have each port of the proxy beside it, in every way that a socket can be told to share. */
const STEAL = `
import errno, socket
for port in (64980, 64443, 3128, 8081, 53):
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::")):
        s = socket.socket(family)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, option, 1)
        try: s.bind((address, port)); s.listen(); print("bound", port, address)
        except OSError as error: print(errno.errorcode[error.errno])
`;
