import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PROXY_SOCKET } from "../../../policy/box-spec.ts";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { lookUp, reach, readStatus } from "./box-questions.ts";
import { holdBox } from "./held-box.ts";
import { ADDRESS_WALL, readDecisions } from "./netns-box.ts";

// The keeper at its bounds: sets of the kernel without room, its own table full, a proxy that lies without end.

const LIST = { allowed: ["github.com", "*.wild.lab-names.example"], critical: ["github.com"] };
const EMPTY = ADDRESS_WALL;
const NFT = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };
const PYTHON = "/usr/bin/python3";
const OPENED = "tcp:140.82.112.3:443";

function allow(...texts: string[]): PolicyDocument {
  return { ...EMPTY, sources: [{ label: "policy allow", surface: "list", words: texts.map((text) => ({ text })) }] };
}

describe("the keeper at its bounds", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(async () => {
    // What one row opens by ipset, the table that another has left there would refuse.
    await lab.exec(["nft", "delete table inet agentbox"]);
    await lab.control.reset();
  });
  afterAll(() => lab.stop());

  it.each([
    ["ipset", {}],
    ["nft", { replace: NFT }],
  ])("gives no answer when a set of %s is full, opens no part of it, says so once, and has room again after a deny", async (backend, replace) => {
    // Answers of 1,000 elements, of which one finds room beside what others hold of the 65,536 of a set.
    const ports = Array.from({ length: 100 }, (_, index) => index + 1024).join(",");
    const [first = "", ...others] = Array.from({ length: 3 }, (_, net) => `n${net}.many.lab-names.example`);
    const policy = allow(`*.many.lab-names.example:${ports}`);
    await lab.control.setDns(Object.fromEntries([first, ...others].map((name, net) => [name, { a: listAddresses(net), aaaa: [], ttl: 600 }])));
    const run = await holdBox(lab, { ...LIST, ...replace }, async (box) => {
      expect(await box.control({ op: "replace", document: policy })).toMatchObject({ ok: true });
      expect(await lookUp(box, first)).toBe("0");
      await fill(lab, backend, 64_000);
      for (const name of [...others, ...others]) expect(await lookUp(box, name)).toBe("2");
      expect(await countElements(lab, backend)).toEqual([1000, 0, 0]);
      expect((await readStatus(box)).degraded.join()).toMatch(/^the kernel takes no more addresses: [^,]{1,200}full/);
      expect(await reach(box, OPENED)).toEqual(["connected"]);
      expect(await lookUp(box, "github.com")).toBe("0");
      // A deny must never fail for want of room.
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true });
      expect(await countElements(lab, backend)).toEqual([0, 0, 0]);
      expect(await box.control({ op: "replace", document: allow(`n1.many.lab-names.example:${ports}`) })).toMatchObject({ ok: true });
      expect(await lookUp(box, "n1.many.lab-names.example")).toBe("0");
      expect((await readStatus(box)).degraded).toEqual([]);
    });
    expect(run.logs["decisions.jsonl"]?.split('"event":"set-full"').length).toBe(2);
    const failed = readDecisions(run).find(({ host, action }) => host === "n1.many.lab-names.example" && action === "deny");
    expect(failed?.detail).toMatch(/^its addresses could not be opened: .*full/);
    expect(failed?.detail?.length).toBeLessThan(2000);
  });

  it("learns no more than it can remember and says so, ends the first connection of all at a deny, and has room again then", async () => {
    const wild = allow("*.many.lab-names.example", "example.com");
    await lab.control.setDns(Object.fromEntries(["first", "one-more"].map((label, index) => [`${label}.many.lab-names.example`, { a: [`93.184.220.${44 + index}`], aaaa: [], ttl: 600 }])));
    const run = await holdBox(lab, { ...LIST, spec: { policy: wild } }, async (box) => {
      expect(await lookUp(box, "first.many.lab-names.example")).toBe("0");
      const tunnel = box.exec([PYTHON, "-c", TUNNEL, "93.184.220.44"]);
      await lab.exec(["sh", "-c", SIGNAL_LOOP, "sh", lab.boxNamespace, "STOP"]);
      const { stdout } = await box.exec([PYTHON, "-c", FILL, PROXY_SOCKET, "x.many.lab-names.example"], PROXY_IDS);
      // What the start and the first name take of 60,000 leaves no room for a last answer of 500.
      expect(stdout).toMatch(/^whole 119 single 4\d\d the keeper's table of addresses is full/);
      await lab.exec(["sh", "-c", SIGNAL_LOOP, "sh", lab.boxNamespace, "CONT"]);
      await expect.poll(() => lookUp(box, "github.com"), { timeout: 8000 }).toBe("0");
      expect(await lookUp(box, "one-more.many.lab-names.example")).toBe("2");
      expect(await lookUp(box, "first.many.lab-names.example")).toBe("0");
      expect((await readStatus(box)).degraded.join()).toMatch(/^the keeper's table of addresses is full/);
      expect(await box.control({ op: "replace", document: allow("example.com") })).toMatchObject({ ok: true });
      expect((await tunnel).stdout).toBe("open\nConnectionResetError\n");
      expect(await lookUp(box, "example.com")).toBe("0");
      expect((await readStatus(box)).degraded).toEqual([]);
      // Denied and forgotten, it is closed until it is learned anew.
      expect(await box.control({ op: "replace", document: wild })).toMatchObject({ ok: true });
      expect(await reach(box, "tcp:93.184.220.44:443")).toEqual(["ECONNREFUSED"]);
      expect(await lookUp(box, "one-more.many.lab-names.example")).toBe("0");
      expect(await reach(box, "tcp:93.184.220.45:443")).toEqual(["connected"]);
    });
    const failed = readDecisions(run).find(({ host, action }) => host === "one-more.many.lab-names.example" && action === "deny");
    expect(failed?.detail).toMatch(/^its addresses could not be opened: the keeper's table/);
  }, 150_000);

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
});

function listAddresses(net: number): string[] {
  return Array.from({ length: 10 }, (_, index) => `93.185.${net}.${index + 1}`);
}

/** Puts elements into the learned set that nobody asked for. */
async function fill(lab: NamespaceLab, backend: string, count: number): Promise<void> {
  const addresses = Array.from({ length: count }, (_, index) => `95.0.${index >> 8}.${index & 255}`);
  const input =
    backend === "ipset"
      ? addresses.map((address) => `add agentbox-learned-4 ${address},tcp:443 timeout 3600\n`).join("")
      : `add element inet agentbox agentbox-learned-4 { ${addresses.map((address) => `${address} . tcp . 443 timeout 1h`).join(", ")} }\n`;
  await lab.exec(backend === "ipset" ? ["ipset", "restore"] : ["nft", "-f", "-"], { input });
}

/** How many elements of the learned set lie in each of the networks of `listAddresses`. */
async function countElements(lab: NamespaceLab, backend: string): Promise<number[]> {
  const { stdout } = await lab.exec(backend === "ipset" ? ["ipset", "save", "agentbox-learned-4"] : ["nft", "list", "set", "inet", "agentbox", "agentbox-learned-4"]);
  return [0, 1, 2].map((net) => stdout.split(`93.185.${net}.`).length - 1);
}

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
    if mode == "pins": return {"op": "pin", "id": n, "name": "p%d.example" % n, "addresses": ["10.%d.%d.%d" % (n >> 16 & 255, n >> 8 & 255, n & 255)] * 64}
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

/** Holds a connection on which the kernel alone says something, each second, and tells what became of it. */
const TUNNEL = `
import socket, sys
s = socket.create_connection((sys.argv[1], 443)); s.settimeout(100)
s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL): s.setsockopt(socket.IPPROTO_TCP, option, 1)
print("open", flush=True)
try: s.recv(100); print("ended")
except OSError as error: print(type(error).__name__)
`;

const SPEAK = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); f = s.makefile("r"); f.readline()
def learn(addresses):
    s.send((json.dumps({"op": "learn", "id": 1, "name": sys.argv[2], "addresses": [{"address": a, "ttl": 3600} for a in addresses]}) + "\\n").encode())
    while (m := json.loads(f.readline()))["op"] != "done": pass
    return m
def nth(k): return "94.%d.%d.%d" % (k >> 16 & 255, k >> 8 & 255, k & 255)
`;

/** Speaks in the proxy's place of one name with ever new addresses, 500 at once and then one by one, until there is no room for a single one. */
const FILL = `${SPEAK}
whole = single = 0
while learn(nth(k) for k in range(500 * whole, 500 * whole + 500))["ok"]: whole += 1
while (m := learn([nth(100000 + single)]))["ok"]: single += 1
print("whole", whole, "single", single, m["detail"])
`;
