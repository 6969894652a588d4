import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PROXY_SOCKET } from "../../../policy/box-spec.ts";
import { PROXY_IDS } from "../../../policy/reserved-ids.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { lookUp, lookUpAddress, reach, readStatus } from "./box-questions.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { ADDRESS_WALL } from "./netns-box.ts";

// Names that may lead to private addresses: where they lead is settled once.

const LIST = { allowed: ["github.com"], critical: ["github.com"] };
const EMPTY = ADDRESS_WALL;
const PYTHON = "/usr/bin/python3";
const PRIVATE = "private.lab-names.example";
const LATE = "late.lab-names.example";
const NO_IPSET = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };

describe("a private name", () => {
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

  it.each([
    ["iptables", {}],
    ["nftables", { replace: NO_IPSET }],
  ])("is open where it first led, on its ports, and nowhere else for as long as the box runs, by %s", async (_case, backend) => {
    const policy = { ...EMPTY, private: [{ host: PRIVATE, ports: [443] }] };
    await holdBox(lab, { ...LIST, ...backend, spec: { policy } }, async (box) => {
      const targets = ["tcp:10.1.2.3:443", "tcp:10.1.2.3:80", "tcp:10.9.8.7:443"];
      const isFirst = async () => {
        expect(await lookUpAddress(box, PRIVATE)).toBe("0 10.1.2.3");
        expect(await reach(box, ...targets)).toEqual(["connected", "ECONNREFUSED", "ECONNREFUSED"]);
      };
      await isFirst();
      const asked = await lab.control.questions({ name: PRIVATE });
      expect(asked.length).toBeGreaterThan(0);
      // Its owner changes his mind.
      await lab.control.setDns({ [PRIVATE]: { a: ["10.9.8.7"], aaaa: [], ttl: 0 } });
      await isFirst();
      expect(await box.control({ op: "replace", document: { ...policy, allowPrivate: [{ text: "10.9.0.0/16" }] } })).toMatchObject({ ok: true });
      await isFirst();
      expect(await box.control({ op: "replace", document: EMPTY })).toMatchObject({ ok: true });
      expect(await lookUp(box, PRIVATE)).toBe("3");
      expect(await reach(box, ...targets)).toEqual(["ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED"]);
      expect(await box.control({ op: "replace", document: policy })).toMatchObject({ ok: true });
      await isFirst();
      await restartProxy(box);
      await isFirst();
      expect(await lab.control.questions({ name: PRIVATE })).toHaveLength(asked.length);
    });
  });

  it("that led nowhere is asked for again when its owner has another policy, and not when the resolver begins anew", async () => {
    const policy = { ...EMPTY, private: [{ host: LATE, ports: [443] }] };
    await holdBox(lab, { ...LIST, spec: { policy } }, async (box) => {
      expect(await lookUpAddress(box, LATE)).toBe("0");
      const asked = await lab.control.questions({ name: LATE });
      await lab.control.setDns({ [LATE]: { a: ["10.9.8.7"], aaaa: [], ttl: 0 } });
      await restartProxy(box);
      expect(await lookUpAddress(box, LATE)).toBe("0");
      expect(await lab.control.questions({ name: LATE })).toHaveLength(asked.length);
      expect(await box.control({ op: "replace", document: { ...policy, allowPrivate: [{ text: "10.77.0.0/16" }] } })).toMatchObject({ ok: true });
      expect(await lookUpAddress(box, LATE)).toBe("0 10.9.8.7");
      expect(await reach(box, "tcp:10.9.8.7:443", "tcp:10.1.2.3:443")).toEqual(["connected", "ECONNREFUSED"]);
    });
  });

  it("stays where it led whatever a proxy that was taken over says of it", async () => {
    const policy = { ...EMPTY, private: [PRIVATE, LATE].map((host) => ({ host, ports: [443] })) };
    await holdBox(lab, { ...LIST, spec: { policy } }, async (box) => {
      const [first, second] = [PRIVATE, LATE].map((name) => ({ op: "learn", name, addresses: [{ address: "10.9.8.7", ttl: 60 }] }));
      const said = [pin(PRIVATE, "10.9.8.7"), pin(PRIVATE), pin(PRIVATE, "10.1.2.3", "10.9.8.7"), first, pin(LATE, "10.9.8.7"), second, pin("db", "10.9.8.7"), pin("github.com", "10.9.8.7")];
      const { stdout } = await box.exec([PYTHON, "-c", SPEAK, PROXY_SOCKET, JSON.stringify(said)], PROXY_IDS);
      expect(JSON.parse(stdout)).toEqual([...said.map(() => false), true, true]);
      expect(await reach(box, "tcp:10.1.2.3:443", "tcp:10.9.8.7:443")).toEqual(["connected", "ECONNREFUSED"]);
    });
  });
});

/** Kills the resolver and waits until its successor answers. */
async function restartProxy(box: HeldBox): Promise<void> {
  const before = (await readStatus(box)).proxyRestarts;
  await box.exec(["sh", "-c", 'pkill -KILL -P "$(pgrep -o -f agentbox-resolver)"'], PROXY_IDS);
  await expect.poll(async () => (await readStatus(box)).proxyRestarts, { timeout: 8000 }).toBe(before + 1);
  await expect.poll(() => lookUp(box, "github.com"), { timeout: 8000 }).toBe("0");
}

function pin(name: string, ...addresses: string[]): unknown {
  return { op: "pin", name, addresses };
}

/** Speaks as the proxy, in whose place it comes, repeats the pins at last, and prints which of its questions were granted, in their order. */
const SPEAK = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1]); f = s.makefile("r"); pins = json.loads(f.readline())["pins"]
granted = []
for id, question in enumerate([*json.loads(sys.argv[2]), *({"op": "pin", "name": name, "addresses": pins[name]} for name in pins)]):
    s.send((json.dumps({**question, "id": id}) + "\\n").encode())
    while (m := json.loads(f.readline()))["op"] != "done": pass
    granted.append(m["ok"])
print(json.dumps(granted))
`;
