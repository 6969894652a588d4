import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { PROXY_SOCKET } from "../../../policy/box-spec.ts";
import type { ControlReply } from "../../../policy/keeper-message.ts";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { ADDRESS_WALL } from "./netns-box.ts";
import { parseOutcomes, reachArgv } from "./reach.ts";

// A policy is offered to the proxy before the keeper has built it: what holds in between, and after it was refused.

const LIST = { allowed: ["github.com"], critical: ["github.com"] };
const ALLOWED: PolicyDocument = { ...ADDRESS_WALL, sources: [{ label: "policy allow", surface: "list", words: [{ text: "example.com" }] }] };
const BROKEN: PolicyDocument = { ...ALLOWED, blocks: [{ label: "config", words: [{ text: "a b", place: { file: "config.toml", line: 7 } }] }] };
const LEARNED = "tcp:93.184.220.34:443";

const told = z.strictObject({ policies: z.array(z.strictObject({ version: z.int(), words: z.array(z.string()) })), learned: z.boolean().nullable() });

describe("a policy that is on offer", () => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterEach(() => lab.control.reset());
  afterAll(() => lab.stop());

  it("lets in what the proxy learns by it, once it is in force", async () => {
    const { reply, heard, reached } = await offer(lab, { document: ALLOWED, mode: "takes" });
    expect(reply).toMatchObject({ ok: true, added: ["allow example.com:443"] });
    expect(heard).toMatchObject({ policies: [{ words: [] }, { words: ["example.com"] }], learned: true });
    expect(reached).toBe("connected");
  });

  it.each([
    { name: "that the keeper cannot build, although the proxy took it", document: BROKEN, mode: "takes", said: { what: expect.stringContaining('"a b"'), place: { file: "config.toml", line: 7 } } },
    { name: "that the proxy refuses", document: ALLOWED, mode: "refuses", said: { what: "no such policy" } },
    { name: "that the proxy never answers", document: ALLOWED, mode: "silent", said: { what: "the resolver did not take the policy in time" } },
  ])("opens nothing $name, and the proxy hears again what is in force", async ({ document, mode, said }) => {
    const { reply, heard, reached } = await offer(lab, { document, mode });
    expect(reply).toMatchObject({ ok: false, complaints: [said], status: { degraded: [expect.stringContaining("the last change was refused")] } });
    expect(heard).toMatchObject({ policies: [{ words: [] }, { words: ["example.com"] }, { words: [] }], learned: false });
    const versions = heard.policies.map(({ version }) => version);
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    expect(new Set(versions).size).toBe(3);
    expect(reply.status?.version).toBe(versions[2]);
    expect(reached).toBe("ECONNREFUSED");
  });

  it("is what a proxy hears first that comes meanwhile", async () => {
    await holdBox(lab, LIST, async (box) => {
      await signal(lab, "STOP", "KILL");
      const replaced = box.control({ op: "replace", document: ALLOWED });
      await new Promise((resolve) => setTimeout(resolve, 500));
      const heard = await speak(box, "takes", 1);
      expect(await replaced).toMatchObject({ ok: true });
      expect(heard).toMatchObject({ policies: [{ words: ["example.com"] }], learned: true });
      await signal(lab, "CONT");
    });
  });
});

/** Puts a proxy of the test in the place of the box's own, and has the box take a policy. */
async function offer(lab: NamespaceLab, { document, mode }: { document: PolicyDocument; mode: string }): Promise<{ reply: ControlReply; heard: z.infer<typeof told>; reached: string }> {
  const seen: { reply: ControlReply; heard: z.infer<typeof told>; reached: string }[] = [];
  await holdBox(lab, LIST, async (box) => {
    await signal(lab, "STOP");
    const speaking = speak(box, mode, 2);
    await expect.poll(() => box.control({ op: "status" }), { timeout: 5000 }).toMatchObject({ status: { proxyRestarts: 1 } });
    const reply = await box.control({ op: "replace", document });
    const heard = await speaking;
    const { stdout } = await box.exec(reachArgv([LEARNED]));
    seen.push({ reply, heard, reached: parseOutcomes(stdout).map(({ outcome }) => outcome).join() });
    await signal(lab, "CONT");
  });
  const [first] = seen;
  if (first === undefined) throw new Error("the box was never looked at");
  return first;
}

async function speak(box: HeldBox, mode: string, turn: number): Promise<z.infer<typeof told>> {
  const { stdout, stderr } = await box.exec(["/usr/bin/python3", "-c", SPEAK, PROXY_SOCKET, mode, String(turn)], PROXY_IDS);
  if (stdout === "") throw new Error(stderr);
  return told.parse(JSON.parse(stdout));
}

/** Signals the loop that starts the resolver again, and the resolver where a second signal is named. */
async function signal(lab: NamespaceLab, loop: string, resolver = ""): Promise<void> {
  await lab.exec(["sh", "-c", SIGNAL, "sh", lab.boxNamespace, loop, resolver]);
}

const SIGNAL = `
for pid in $(ip netns pids "$1"); do
  case $(tr '\\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in
    "/bin/sh -c "*agentbox-resolver*) kill "-$2" "$pid" ;;
    /*node*proxy.mjs*) [ -z "$3" ] || kill "-$3" "$pid" ;;
  esac
done
`;

/** Speaks as the proxy: when the policy of its turn comes it asks for a name of it, then confirms, refuses or is silent. Ends when nothing comes any more. */
const SPEAK = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])
mode = sys.argv[2]; turn = int(sys.argv[3]); policies = []; learned = None
def send(message): s.send((json.dumps(message) + "\\n").encode())
f = s.makefile("r")
while True:
    try: m = json.loads(f.readline())
    except (TimeoutError, ValueError): break
    if m["op"] == "done": learned = m["ok"]
    if m["op"] != "policy": continue
    policies.append({"version": m["version"], "words": [w["text"] for o in m["document"]["sources"] for w in o["words"]]})
    if len(policies) != turn: continue
    s.settimeout(4)
    send({"op": "learn", "id": 1, "name": "example.com", "addresses": [{"address": "93.184.220.34", "ttl": 60}]})
    if mode != "silent": send({"op": "policy", "version": m["version"], "ok": mode == "takes", "detail": "" if mode == "takes" else "no such policy"})
print(json.dumps({"policies": policies, "learned": learned}))
`;
