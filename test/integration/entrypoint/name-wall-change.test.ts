import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PolicyDocument } from "../../../policy/policy-document.ts";
import { startNamespaceLab, type NamespaceLab } from "../../lab/namespace.ts";
import { type HeldBox, holdBox } from "./held-box.ts";
import { NAME_WALL } from "./netns-box.ts";

// A change of the policy while a box with the name wall runs: what is left alone follows it.

const NO_IPSET = { ipset: "#!/bin/sh\necho 'ipset: Cannot open session to kernel.' >&2\nexit 1\n" };
const PYTHON = "/usr/bin/python3";
const HOST = "altssh.gitlab.com";
const LITERAL = "10.9.8.7";

function allow(...texts: string[]): PolicyDocument {
  return { ...NAME_WALL, sources: [{ label: "policy allow", surface: "list", words: texts.map((text) => ({ text })) }] };
}

describe.each([
  ["iptables", {}],
  ["nftables", { replace: NO_IPSET }],
])("a running box whose names are judged, by %s", (_backend, replace) => {
  let lab: NamespaceLab;
  beforeAll(async () => {
    lab = await startNamespaceLab();
  });
  afterAll(() => lab.stop());

  it("leaves a port alone as long as an entry says that it tells no name, and an address as long as it is written", async () => {
    await holdBox(lab, { allowed: ["github.com"], critical: [], spec: { policy: NAME_WALL }, standIn: true, ...replace }, async (box) => {
      const steps: [PolicyDocument, string, string][] = [
        [allow(HOST), "proxy--tls", "proxy--tls"],
        [allow(`tcp://${HOST}:443`), "SSH", "proxy--tls"],
        [allow(`tcp://${HOST}:443`, LITERAL), "SSH", "silent"],
        [allow(HOST, LITERAL), "proxy--tls", "silent"],
        [allow(HOST), "proxy--tls", "proxy--tls"],
        // Another name of the same kind keeps the port open that this one had.
        [allow(HOST, `tcp://${HOST}:443`), "proxy--tls", "proxy--tls"],
      ];
      for (const [document, name, address] of steps) {
        expect(await box.control({ op: "replace", document })).toMatchObject({ ok: true });
        expect(await ask(box, HOST)).toBe(name);
        expect(await ask(box, LITERAL)).toBe(address);
      }
    });
  });

  it("changes what only the proxy knows, and refuses what its rules, sockets and variables were made of", async () => {
    const { nameWall } = NAME_WALL;
    await holdBox(lab, { allowed: ["github.com"], critical: [], spec: { policy: NAME_WALL }, standIn: true, ...replace }, async (box) => {
      expect(await ask(box, HOST)).toBe("Name");
      const change = (next: Partial<PolicyDocument>) => box.control({ op: "replace", document: { ...NAME_WALL, ...next } });
      expect(await change({ base: "deny-list", nameWall: { ...nameWall, methods: "limited", ech: "refuse", maxBodyBytes: 1, inspect: true, passthrough: [{ text: "github.com" }] } })).toMatchObject({ ok: true });
      expect(await change({ enforcement: "address" })).toMatchObject({ ok: false, complaints: [{ what: "network.enforcement cannot change while the box runs", expected: "network.enforcement = name, as at its start" }] });
      expect(await change({ nameWall: { ...nameWall, intercept: true, httpPort: 3129 } })).toMatchObject({ ok: false, complaints: [{ what: expect.stringContaining("network_proxy.mitm.enabled") }, { what: expect.stringContaining("network_proxy.proxy_url") }] });
      // The first of them is in force still: a name that nothing denies resolves.
      expect(await ask(box, HOST)).toBe("proxy--tls");
      expect(await box.control({ op: "status" })).toMatchObject({ ok: true, status: { degraded: [expect.stringContaining("the last change was refused")] } });
    });
  });
});

/** The first word that is heard from a name or address on 443. */
async function ask(box: HeldBox, host: string): Promise<string> {
  const { stdout, stderr } = await box.exec([PYTHON, "-c", ASK, host]);
  if (stdout === "") throw new Error(stderr);
  return stdout.trim();
}

const ASK = `
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], 443), 5); s.settimeout(2)
    print(s.recv(64).decode().split("-2.0-")[0])
except TimeoutError: print("silent")
except socket.gaierror: print("Name")
except OSError as error: print(type(error).__name__)
`;
