import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { KEEPER_DIR, PROXY_SOCKET } from "../../../policy/box-spec.ts";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { ADDRESS_WALL } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// Cases 29 and 30, the expiry of a word, and what a taken-over proxy gains: in a running box, by its keeper.

const LIST = { allowed: ["github.com"], critical: ["github.com"] };
const EMPTY = ADDRESS_WALL;

function allow(...texts: string[]): PolicyDocument {
  return { ...EMPTY, sources: [{ label: "policy allow", surface: "list", words: texts.map((text) => ({ text })) }] };
}

const NFT = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };

describe.each([
  ["ipset", {}],
  ["nftables (ipset fails, injected)", { replace: NFT }],
])("a policy that is replaced while the box runs, by %s", (_case, backend) => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it("lets a new name in at once, takes it out again, and ends the connections that it had", async () => {
    const run = await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      expect(await fetch(box, "https://example.com/")).toBe("000");
      expect(await box.control({ op: "replace", document: allow("example.com", "93.184.220.35") })).toMatchObject({ ok: true, added: ["allow example.com:443", "allow 93.184.220.35:443"], removed: [] });
      expect(await fetch(box, "https://example.com/")).toBe("200");
      expect(await reach(box, "tcp:93.184.220.35:443")).toBe("connected");
      const tunnel = box.exec(["/usr/bin/python3", "-c", TUNNEL]);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true, removed: ["allow example.com:443", "allow 93.184.220.35:443"] });
      expect((await tunnel).stdout).toBe("open\nConnectionResetError\nConnectionResetError\nanswered\n");
      expect(await fetch(box, "https://example.com/")).toBe("000");
      expect(await reach(box, "tcp:93.184.220.34:443")).toBe("ECONNREFUSED");
      expect(await fetch(box, "https://github.com/")).toBe("200");
      expect(await box.control({ op: "replace", document: allow("example.com") })).toMatchObject({ ok: true });
      expect(await fetch(box, "https://example.com/")).toBe("200");
    });
    expect(run.logs["decisions.jsonl"]).toContain('"event":"policy-replaced"');
  });

  it("cuts nothing in a later run of the same namespace", async () => {
    await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      await box.control({ op: "replace", document: allow("example.com") });
      expect(await fetch(box, "https://example.com/")).toBe("200");
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true });
    });
    await holdBox(lab, { ...LIST, ...backend, spec: { policy: allow("example.com") } }, async (box) => {
      expect(await fetch(box, "https://example.com/")).toBe("200");
    });
  });

  it("stays as it was when the new one is broken, and says so in the status", async () => {
    const run = await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      const broken = { ...allow("example.com"), blocks: [{ label: "config", words: [{ text: "a b", place: { file: "config.toml", line: 7 } }] }] };
      const reply = await box.control({ op: "replace", document: broken });
      expect(reply).toMatchObject({ ok: false, complaints: [{ place: { file: "config.toml", line: 7 } }] });
      expect(await fetch(box, "https://example.com/")).toBe("000");
      expect(await fetch(box, "https://github.com/")).toBe("200");
      expect(await box.control({ op: "status" })).toMatchObject({ ok: true, status: { degraded: [expect.stringContaining("the last change was refused")] } });
      expect(await box.control({ op: "replace", document: { ...EMPTY, ssh: "any" } })).toMatchObject({ ok: false });
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true, status: { degraded: [] } });
    });
    expect(run.logs["decisions.jsonl"]).toContain('"event":"policy-refused"');
  });

  it("loses an entry whose time is over", async () => {
    await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      const words = [{ text: "example.com", until: Date.now() + 2500 }];
      await box.control({ op: "replace", document: { ...EMPTY, sources: [{ label: "policy allow", surface: "list", words }] } });
      expect(await fetch(box, "https://example.com/")).toBe("200");
      await expect.poll(() => fetch(box, "https://example.com/"), { timeout: 8000, interval: 300 }).toBe("000");
      expect(await reach(box, "tcp:93.184.220.34:443")).toBe("ECONNREFUSED");
    });
  });

  it("opens to a proxy that lies nothing but allowed names on their ports, at addresses they may lead to", async () => {
    await holdBox(lab, { ...LIST, ...backend }, async (box) => {
      const forged = [
        renderLearn(1, "evil.example.net", "93.184.220.66"),
        renderLearn(2, "github.com", "10.1.2.3"),
        renderLearn(3, "github.com", "169.254.169.254"),
        renderLearn(4, "github.com", "93.184.220.66"),
        { op: "pin", id: 5, name: "db", addresses: ["93.184.220.68"] },
        renderLearn(6, "github.com", "93.184.220.67,tcp:1 timeout 0\nflush agentbox-cut-4"),
      ];
      const { stdout } = await box.exec(["/usr/bin/python3", "-c", SPEAK, PROXY_SOCKET, JSON.stringify(forged)], PROXY_IDS);
      expect(JSON.parse(stdout)).toMatchObject({ 1: false, 2: false, 3: false, 4: true, 6: false });
      expect(await reach(box, "tcp:93.184.220.66:443")).toBe("connected");
      for (const target of ["tcp:93.184.220.66:8443", "tcp:10.1.2.3:443", "tcp:169.254.169.254:80", "tcp:93.184.220.68:443", "tcp:93.184.220.67:443"]) {
        expect(await reach(box, target)).toBe("ECONNREFUSED");
      }
      // Nor can it speak with the host's voice.
      const control = await box.exec(["/usr/bin/python3", "-c", "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])", `${KEEPER_DIR}/run/control.sock`], PROXY_IDS);
      expect(control.stderr).toContain("PermissionError");
      const replaced = await box.exec(["sh", "-c", `rm -f ${KEEPER_DIR}/run/control.sock; ls ${KEEPER_DIR}/run`], PROXY_IDS);
      expect(replaced.stdout).toContain("control.sock");
      await expect.poll(() => fetch(box, "https://github.com/"), { timeout: 8000, interval: 300 }).toBe("200");
    });
  });
});

async function fetch(box: HeldBox, url: string): Promise<string> {
  const { stdout } = await box.exec(["curl", "-sS", "--max-time", "5", "--cacert", "/etc/ssl/certs/ca-certificates.crt", "-o", "/dev/null", "-w", "%{http_code}", url]);
  return stdout;
}

async function reach(box: HeldBox, target: string): Promise<string> {
  const { stdout } = await box.exec(reachArgv([target]));
  return parseOutcomes(stdout)
    .map(({ outcome }) => outcome)
    .join();
}

function renderLearn(id: number, name: string, address: string): unknown {
  return { op: "learn", id, name, addresses: [{ address, ttl: 60 }] };
}

/** Holds connections, the last to what stays allowed, and says what each does after the change. */
const TUNNEL = `
import socket, time
held = [socket.create_connection((host, 443)) for host in ("example.com", "93.184.220.35", "github.com")]
print("open", flush=True)
time.sleep(2.5)
for s in held:
    s.settimeout(5)
    try: s.send(b"no TLS at all\\n"); s.recv(100); print("answered")
    except OSError as error: print(type(error).__name__)
`;

/** Speaks as the proxy, in whose place it comes, and prints which of its questions were granted. */
const SPEAK = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])
questions = json.loads(sys.argv[2])
f = s.makefile("r"); json.loads(f.readline())
for q in questions: s.send((json.dumps(q) + "\\n").encode())
done = {}
while len(done) < len(questions):
    m = json.loads(f.readline())
    if m["op"] == "done": done[m["id"]] = m["ok"]
print(json.dumps(done))
`;
