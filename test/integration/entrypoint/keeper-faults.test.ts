import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { KeeperStatus } from "../../../policy/keeper-message.ts";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { KEEPER_IDS, PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { CONTROL_SOCKET, PROXY_SOCKET } from "../../../policy/box-spec.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { ADDRESS_WALL, readDecisions } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// What the keeper of a running box meets: its program killed, sets without room, a proxy that floods it, requests that are none.

const LIST = { allowed: ["github.com", "*.wild.lab-names.example"], critical: ["github.com"] };
const EMPTY = ADDRESS_WALL;
const NFT = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };
const PYTHON = "/usr/bin/python3";
const OPENED = "tcp:140.82.112.3:443";

function allow(...texts: string[]): PolicyDocument {
  return { ...EMPTY, sources: [{ label: "policy allow", surface: "list", words: texts.map((text) => ({ text })) }] };
}

describe("the keeper of a running box", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it.each([
    ["ipset", {}, "ipset -exist -"],
    ["nft", { replace: NFT }, "nft -i"],
  ])("goes on when its %s is killed: what was opened stays, and new names are opened again", async (_case, backend, command) => {
    await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      expect(await lookUp(box, "w1.wild.lab-names.example")).toBe("0");
      expect(await reach(box, "tcp:93.184.217.30:443", OPENED)).toEqual(["connected", "connected"]);
      expect(await lab.exec(["sh", "-c", KILL, "sh", lab.boxNamespace, command])).toMatchObject({ stdout: "killed\n" });
      expect(await reach(box, "tcp:93.184.217.30:443", OPENED)).toEqual(["connected", "connected"]);
      await lab.control.setDns({ "w2.wild.lab-names.example": { a: ["93.184.217.31"], aaaa: [] } });
      await expect.poll(() => lookUp(box, "w2.wild.lab-names.example"), { timeout: 5000, interval: 100 }).toBe("0");
      expect(await reach(box, "tcp:93.184.217.31:443")).toEqual(["connected"]);
      await expect.poll(() => box.control({ op: "status" }), { timeout: 5000 }).toMatchObject({ status: { degraded: [] } });
      expect(await box.control({ op: "replace", document: allow("example.com") })).toMatchObject({ ok: true });
    });
  });

  it("gives no answer when a set is full, opens no part of it, says so once, and has room again after a deny", async () => {
    // 700 ports at 10 addresses: a tenth answer is more than the 65,536 elements of a set.
    const ports = Array.from({ length: 700 }, (_, index) => index + 1024).join(",");
    const nets = Array.from({ length: 11 }, (_, index) => index);
    await lab.control.setDns(Object.fromEntries(nets.map((net) => [`n${net}.many.lab-names.example`, { a: listAddresses(net), aaaa: [], ttl: 600 }])));
    const run = await holdBox(lab, LIST, async (box) => {
      expect(await box.control({ op: "replace", document: allow(`*.many.lab-names.example:${ports}`) })).toMatchObject({ ok: true });
      for (const net of nets.slice(0, 9)) await expect.poll(() => lookUp(box, `n${net}.many.lab-names.example`), { timeout: 10_000 }).toBe("0");
      expect(await countElements(lab, 8)).toBe(7000);
      for (const net of [9, 10, 9, 10]) expect(await lookUp(box, `n${net}.many.lab-names.example`)).toBe("2");
      expect([await countElements(lab, 9), await countElements(lab, 10)]).toEqual([0, 0]);
      expect((await readStatus(box)).degraded.join()).toMatch(/^the kernel takes no more addresses: [^,]{1,200}full/);
      expect(await reach(box, OPENED)).toEqual(["connected"]);
      expect(await lookUp(box, "github.com")).toBe("0");
      // A deny must never fail for want of room.
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true });
      expect(await countElements(lab, 8)).toBe(0);
      expect(await lookUp(box, "w1.wild.lab-names.example")).toBe("0");
      expect((await readStatus(box)).degraded).toEqual([]);
    });
    expect(run.logs["decisions.jsonl"]?.split('"event":"set-full"').length).toBe(2);
    const failed = readDecisions(run).find(({ host, action }) => host === "n9.many.lab-names.example" && action === "deny");
    expect(failed?.detail).toMatch(/^its addresses could not be opened: .*full/);
    expect(failed?.detail?.length).toBeLessThan(2000);
  });

  it("does not grow for a proxy that lies without end, whether it hears the answers or not, and still denies", async () => {
    await holdBox(lab, LIST, async (box) => {
      const memory = async (): Promise<number> => Number((await lab.exec(["sh", "-c", MEMORY, "sh", lab.boxNamespace])).stdout);
      const before = await memory();
      // Whoever took the resolver over would not be started again.
      await lab.exec(["sh", "-c", SIGNAL_LOOP, "sh", lab.boxNamespace, "STOP"]);
      for (const mode of ["deaf", "hearing", "pins"]) {
        const { stdout } = await box.exec([PYTHON, "-c", FLOOD, PROXY_SOCKET, mode], PROXY_IDS);
        expect(stdout).toMatch(/^sent \d+/);
        expect((await memory()) - before).toBeLessThan(500_000);
      }
      const { stdout } = await lab.exec(["ipset", "list", "-terse", "agentbox-learned-4"]);
      const entries = Number(/^Number of entries: (\d+)$/m.exec(stdout)?.[1]);
      expect(entries).toBeGreaterThan(1000);
      expect(entries).toBeLessThanOrEqual(65_536);
      await lab.exec(["sh", "-c", SIGNAL_LOOP, "sh", lab.boxNamespace, "CONT"]);
      // The resolver is back; the set has no room until the lies have ended or been denied.
      await expect.poll(() => lookUp(box, "evil.example.net"), { timeout: 8000 }).toBe("3");
      expect(await reach(box, OPENED, "tcp:93.184.220.34:443")).toEqual(["connected", "ECONNREFUSED"]);
      expect(await box.control({ op: "replace", document: { ...EMPTY, blocks: [{ label: "policy deny", words: [{ text: "*.wild.lab-names.example" }] }] } })).toMatchObject({ ok: true });
      expect(await lookUp(box, "w1.wild.lab-names.example")).toBe("3");
    });
  });

  it("has its resolver back although there was no room for one more process when it ended, and its port is never free", async () => {
    await holdBox(lab, LIST, async (box) => {
      const asProxy = async (script: string, ...args: string[]) => (await box.exec(["sh", "-c", script, "sh", ...args], PROXY_IDS)).stdout.trim();
      const loop = await asProxy("pgrep -o -f agentbox-resolver");
      expect(await asProxy('cat "/proc/$1/comm"', loop)).toBe("sh");
      // Whoever starts processes without end takes the last one that the engine's limit allows; here a limit of the loop's own stands for it.
      await asProxy('prlimit --pid "$1" --nproc=0: && pkill -KILL -P "$1"', loop);
      await expect.poll(() => asProxy('cat "/proc/$1/comm"', loop), { timeout: 5000 }).toBe("perl");
      expect((await box.exec([PYTHON, "-c", BIND_53])).stdout).toBe("EADDRINUSE\n");
      expect(await reach(box, OPENED, "tcp:93.184.220.34:443")).toEqual(["connected", "ECONNREFUSED"]);
      await asProxy('prlimit --pid "$1" --nproc=64:', loop);
      await expect.poll(() => lookUp(box, "w1.wild.lab-names.example"), { timeout: 8000, interval: 100 }).toBe("0");
      expect(await asProxy("pgrep -o -f agentbox-resolver")).toBe(loop);
      expect(await box.control({ op: "status" })).toMatchObject({ status: { proxyRestarts: 1, degraded: [] } });
    });
  });

  it("takes requests of its own uid only", async () => {
    await holdBox(lab, LIST, async (box) => {
      const connect = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('connected')";
      for (const ids of [{ uid: 1000, gid: 1000 }, { uid: 0, gid: 0 }, { uid: 0, gid: KEEPER_IDS.gid }, PROXY_IDS, { uid: 1000, gid: KEEPER_IDS.gid }]) {
        const tried = await box.exec([PYTHON, "-c", connect, CONTROL_SOCKET], ids);
        expect(tried.stdout).toBe("");
        expect(tried.stderr).toContain("PermissionError");
      }
      expect(await box.exec([PYTHON, "-c", connect, CONTROL_SOCKET], KEEPER_IDS)).toMatchObject({ stdout: "connected\n" });
      expect(await box.control({ op: "status" })).toMatchObject({ ok: true });
    });
  });

  it("puts two policies that come at once in force one after the other, each whole", async () => {
    await holdBox(lab, LIST, async (box) => {
      const before = (await readStatus(box)).version;
      const replies = await Promise.all([box.control({ op: "replace", document: allow("example.com") }), box.control({ op: "replace", document: allow("chain.lab-names.example") })]);
      expect(replies.map(({ ok }) => ok)).toEqual([true, true]);
      const versions = replies.map(({ status }) => status?.version ?? 0);
      expect(versions.toSorted((a, b) => a - b)).toEqual([before + 1, before + 2]);
      const isFirstLast = versions[0] === before + 2;
      expect(await lookUp(box, "example.com")).toBe(isFirstLast ? "0" : "3");
      expect(await lookUp(box, "chain.lab-names.example")).toBe(isFirstLast ? "3" : "0");
      expect(await lookUp(box, "w1.wild.lab-names.example")).toBe("0");
    });
  });

  it("ends a request beyond its limit, lets half a one wait, and serves others meanwhile", async () => {
    await holdBox(lab, LIST, async (box) => {
      const { version } = await readStatus(box);
      const half = box.exec([PYTHON, "-c", HALF, CONTROL_SOCKET], KEEPER_IDS);
      await expect(box.control({ op: "replace", document: { ...allow("example.com"), sources: [{ label: "x".repeat(65 * 1024 * 1024), surface: "list", words: [] }] } })).rejects.toThrow("the keeper");
      expect(await lookUp(box, "example.com")).toBe("3");
      expect(await box.control({ op: "status" })).toMatchObject({ ok: true, status: { version, degraded: [] } });
      expect(await box.control({ op: "replace", document: allow("example.com") })).toMatchObject({ ok: true });
      expect(await lookUp(box, "example.com")).toBe("0");
      expect((await half).stdout).toContain('"ok":true');
    });
  });
});

async function readStatus(box: HeldBox): Promise<KeeperStatus> {
  const { status } = await box.control({ op: "status" });
  if (status === null) throw new Error("the keeper told no status");
  return status;
}

function listAddresses(net: number): string[] {
  return Array.from({ length: 10 }, (_, index) => `93.185.${net}.${index + 1}`);
}

/** How many elements of the learned set lie in a network of `listAddresses`. */
async function countElements(lab: NamespaceLab, net: number): Promise<number> {
  const { stdout } = await lab.exec(["ipset", "save", "agentbox-learned-4"]);
  return stdout.split(`93.185.${net}.`).length - 1;
}

/** The code of the answer that the box's own resolver gives to an agent: 0, 2 for SERVFAIL, 3 for NXDOMAIN. */
async function lookUp(box: HeldBox, name: string): Promise<string> {
  const { stdout, stderr } = await box.exec([PYTHON, "-c", LOOK_UP, name]);
  return stdout.trim() || stderr;
}

async function reach(box: HeldBox, ...targets: string[]): Promise<string[]> {
  const { stdout } = await box.exec(reachArgv(targets));
  return parseOutcomes(stdout).map(({ outcome }) => outcome);
}

const LOOK_UP = `
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(8); s.connect(("127.0.0.1", 53))
s.send(struct.pack("!HHHHHH", 4660, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in sys.argv[1].split(".")) + b"\\0" + struct.pack("!HH", 1, 1))
print(s.recv(4096)[3] & 15)
`;

const BIND_53 = `
import errno, socket
try: socket.socket().bind(("127.0.0.1", 53)); print("bound")
except OSError as error: print(errno.errorcode[error.errno])
`;

/** Kills the program with this command line in a network namespace, and nobody else's. */
const KILL = `
for pid in $(ip netns pids "$1"); do
  case $(tr '\\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in "$2 ") kill -9 "$pid" && echo killed ;; esac
done
`;

/** Signals the loop that starts the resolver again. */
const SIGNAL_LOOP = `
for pid in $(ip netns pids "$1"); do
  case $(tr '\\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in "/bin/sh -c "*agentbox-resolver*) kill "-$2" "$pid" ;; esac
done
`;

/** Resident memory of the keeper, in kB. */
const MEMORY = `
for pid in $(ip netns pids "$1"); do
  case $(tr '\\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in /*node*keeper.mjs*) awk '/^VmRSS/{print $2}' "/proc/$pid/status" ;; esac
done
`;

/** Speaks in the proxy's place for some seconds: one name with ever new addresses, or ever new private names; \`deaf\` reads nothing. */
const FLOOD = `
import json, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.setblocking(False)
mode = sys.argv[2]; sent = 0; n = 0; rest = b""; deadline = time.time() + 4
def message():
    global n; n += 1
    if mode == "pins": return {"op": "pin", "id": n, "name": "p%d.example" % n, "addresses": ["10.%d.%d.%d" % (n >> 16 & 255, n >> 8 & 255, n & 255)] * 1000}
    return {"op": "learn", "id": n, "name": "github.com", "addresses": [{"address": "94.%d.%d.%d" % (k >> 16 & 255, k >> 8 & 255, k & 255), "ttl": 60} for k in range(n * 500, n * 500 + 500)]}
while time.time() < deadline:
    if not rest: rest = (json.dumps(message()) + "\\n").encode()
    try: rest = rest[s.send(rest):]; sent += 1
    except BlockingIOError: time.sleep(0.005)
    except OSError: break
    if mode != "deaf":
        try: s.recv(1 << 20)
        except BlockingIOError: pass
        except OSError: break
print("sent", sent)
`;

const HALF = `
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'{"op":'); time.sleep(6); s.send(b'"status"}\\n'); print(s.recv(4096).decode())
`;
