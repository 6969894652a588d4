import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { emptyDocument } from "../../../policy/policy-document.ts";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { readDecisions } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// What is not the same in every box: private names, report mode, the engine's resolver, questions on their way.

const LIST = { allowed: ["github.com", "chain.lab-names.example"], critical: ["github.com"] };
const EMPTY = emptyDocument({ name: "shell", hosts: [], critical: null });
const PYTHON = "/usr/bin/python3";
const ROOT = { uid: 0, gid: 0 };
const PRIVATE = "private.lab-names.example";

describe("a box", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it("opens a private name where it led when the policy came, on its ports, and nowhere else", async () => {
    const policy = { ...EMPTY, private: [{ host: PRIVATE, ports: [443] }] };
    await holdBox(lab, { ...LIST, spec: { policy } }, async (box) => {
      const targets = ["tcp:10.1.2.3:443", "tcp:10.1.2.3:80", "tcp:10.9.8.7:443"];
      expect(await reach(box, targets)).toEqual(["connected", "ECONNREFUSED", "ECONNREFUSED"]);
      // Its owner changes his mind.
      await lab.control.setDns({ [PRIVATE]: { a: ["10.9.8.7"], aaaa: [], ttl: 0 } });
      expect(await lookUp(box, PRIVATE)).toBe("0 10.1.2.3");
      expect(await reach(box, targets)).toEqual(["connected", "ECONNREFUSED", "ECONNREFUSED"]);
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true });
      expect(await lookUp(box, PRIVATE)).toBe("3");
      expect(await reach(box, targets)).toEqual(["ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED"]);
      // A policy that names it again asks again.
      expect(await box.control({ op: "replace", document: policy })).toMatchObject({ ok: true });
      expect(await lookUp(box, PRIVATE)).toBe("0 10.9.8.7");
      expect(await reach(box, targets)).toEqual(["ECONNREFUSED", "ECONNREFUSED", "connected"]);
    });
  });

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
      expect(await lookUp(box, "example.com")).toMatch(/^0 93\.184\.220\.34/);
      expect(await lookUp(box, "a.evil.example.net")).toBe("3");
      expect(await lookUp(box, PRIVATE)).toBe("0");
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

  it("refuses the engine's resolver (a stand-in on 127.0.0.11) to everybody but its own, on every port", async () => {
    await holdBox(lab, LIST, async (box) => {
      const server = lab.exec([PYTHON, "-c", ENGINE]);
      const targets = ["udp:127.0.0.11:53", "tcp:127.0.0.11:53", "udp:127.0.0.11:40053", "tcp:127.0.0.11:40053"];
      await expect.poll(() => reach(box, targets, PROXY_IDS), { timeout: 8000 }).toEqual(targets.map(() => "connected"));
      for (const ids of [undefined, ROOT]) expect(await reach(box, targets, ids)).toEqual(["EPERM", "ECONNREFUSED", "EPERM", "ECONNREFUSED"]);
      await server;
    });
  });

  it.each([
    ["IPv4", "4"],
    ["IPv6", "6"],
  ] as const)("lets nobody continue what its resolver began over %s, by datagram or by stream", async (_family, family) => {
    const upstream = family === "4" ? lab.dns.v4 : lab.dns.v6;
    await lab.control.setDns({ "chain.lab-names.example": { truncate: true } });
    await holdBox(lab, { ...LIST, spec: { dns: { upstreams: [upstream] } } }, async (box) => {
      expect(await lookUp(box, "chain.lab-names.example")).toMatch(/^0/);
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

/** The code of the answer that the box's own resolver gives, and the addresses of its records. */
async function lookUp(box: HeldBox, name: string): Promise<string> {
  const { stdout, stderr } = await box.exec([PYTHON, "-c", LOOK_UP, name]);
  return stdout.trim() || stderr;
}

const QUESTION = `
import socket, struct, sys
def question(name): return struct.pack("!HHHHHH", 4660, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0" + struct.pack("!HH", 1, 1)
`;

const LOOK_UP = `${QUESTION}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(8); s.connect(("127.0.0.1", 53))
s.send(question(sys.argv[1])); reply = s.recv(4096)
print(reply[3] & 15, *([socket.inet_ntoa(reply[-4:])] if struct.unpack("!H", reply[6:8])[0] else []))
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

/** Answers what it is sent, for a few seconds, where Docker's own resolver listens. */
const ENGINE = `
import select, socket, time
sockets = []
for port in (53, 40053):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        s = socket.socket(socket.AF_INET, kind); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.11", port)); sockets.append(s)
        if kind == socket.SOCK_STREAM: s.listen()
deadline = time.time() + 5
while time.time() < deadline:
    for s in select.select(sockets, [], [], 0.2)[0]:
        if s.type == socket.SOCK_STREAM: s.accept()[0].close()
        else: data, source = s.recvfrom(4096); s.sendto(data, source)
`;
