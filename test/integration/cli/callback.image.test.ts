import { execFileSync } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { detectEngine } from "../../../cli/engine/detect.ts";
import { relayCallback } from "../../../cli/session/callback.ts";

// Needs an image of AgentBox; scripts/run-tests.ts names one.
const image = process.env["AGENTBOX_TEST_IMAGE"];
const container = `agentbox-test-callback-${process.pid}`;
const port = 41_455;

/** Answers a connection that says "hello", as an agent's sign-in server does, and leaves a silent one open. */
const server = `require("node:net").createServer((socket) => socket.once("data", () => socket.end("signed in"))).listen(${port}, "127.0.0.1")`;

const capabilities = ["NET_ADMIN", "NET_RAW", "SETUID", "SETGID", "SETPCAP", "KILL"].flatMap((name) => ["--cap-add", name]);
const kinds = [
  { kind: "a box that is one container", rights: capabilities, joined: false, user: { uid: 0, gid: 0 } },
  { kind: "the agent's container of a sidecar", rights: ["--security-opt", "no-new-privileges", "--user", "1000:1000"], joined: true, user: { uid: 1000, gid: 1000 } },
];

describe.skipIf(image === undefined).each(kinds)("the relay of a sign-in into $kind", ({ rights, joined, user }) => {
  beforeAll(() => {
    const argv = ["run", "--detach", "--name", container, "--network", "none", "--cap-drop", "ALL", ...rights, "--entrypoint", "node", image ?? "", "-e", server];
    execFileSync("docker", argv, { stdio: ["ignore", "ignore", "inherit"] });
  });
  afterAll(() => {
    execFileSync("docker", ["rm", "--force", container], { stdio: "ignore" });
  });

  test("reaches the box's loopback, and its process has no capability and opens no inspector", async () => {
    const engine = await detectEngine({ requested: "docker", env: process.env });
    const end = await relayCallback({ engine, container, port, user, joined });
    try {
      expect(await ask()).toBe("signed in");
      const relays = await inspectRelays();
      expect(relays.length).toBeGreaterThan(0);
      for (const relay of relays) {
        expect(relay).toMatch(/CapEff:\t0{16}\n/);
        expect(relay).toMatch(/CapBnd:\t0{16}\n/);
        expect(relay).toMatch(/NoNewPrivs:\t1\n/);
        // SIGUSR1 (bit 9) is caught where Node would open its inspector.
        const caught = BigInt(`0x${/SigCgt:\t([0-9a-f]+)/.exec(relay)?.[1]}`);
        expect((caught >> 9n) & 1n).toBe(0n);
      }
    } finally {
      end();
    }
  });
});

function ask(): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("hello"));
    let answer = "";
    socket.on("data", (chunk) => (answer += chunk.toString()));
    socket.once("close", () => resolve(answer));
    socket.once("error", reject);
  });
}

/** The status of every relay in the box, while a connection that says nothing holds one open. */
async function inspectRelays(): Promise<string[]> {
  const held = connect(port, "127.0.0.1");
  try {
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const script = 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline | grep -q "disable-sigusr1 -e" && cat $p/status && echo ===; done; true';
      const found = execFileSync("docker", ["exec", container, "sh", "-c", script], { encoding: "utf8" });
      const relays = found.split("===\n").filter((status) => status !== "" && !status.startsWith("Name:\tsh\n"));
      if (relays.length > 0) return relays;
      await sleep(50);
    }
    return [];
  } finally {
    held.destroy();
  }
}
