import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { KEEPER_IDS, PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { CONTROL_SOCKET } from "../../../policy/box-spec.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { lookUp, reach, readStatus } from "./box-questions.ts";
import { holdBox } from "./held-box.ts";
import { ADDRESS_WALL } from "./netns-box.ts";

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
  afterEach(async () => {
    // What one row opens by ipset, the table that another has left there would refuse.
    await lab.exec(["nft", "delete table inet agentbox"]);
    await lab.control.reset();
  });
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

const HALF = `
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'{"op":'); time.sleep(6); s.send(b'"status"}\\n'); print(s.recv(4096).decode())
`;
