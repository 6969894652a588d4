import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { PROXY_NODE_OPTIONS } from "../entrypoint/start-proxy.ts";
import { ORIGIN, type Peer, readCpuSeconds, readMemory, startPeers } from "./bench-proxy/peers.ts";
import { runScript } from "./edge.ts";
import { type Case, measureInterleaved, renderTable, summarize, type Summary } from "./measure.ts";
import { provision } from "./provision.ts";

// Compares the proxy, policy and log on, with those of Debian and one of plain Node streams, in turns. Everything runs in
// a network namespace without a way out, so that ports and the origin's name are the benchmark's own. Needs root.

const HERE = join(import.meta.dirname, "bench-proxy");
const INSIDE = "AGENTBOX_BENCH_INSIDE";
const BULK_BYTES = 512 * 1024 * 1024;
const TUNNELS = 600;
const HELD = 1000;
const RULES = 100_000;

type Measure = { title: string; unit: string; cases: Case[] };

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "15" }, json: { type: "string", default: join(import.meta.dirname, "../build/bench-proxy.json") } } });
  if (process.env[INSIDE] === undefined) return await enterNamespace();
  const dir = mkdtempSync(join(tmpdir(), "agentbox-bench-proxy-"));
  // squid and dante write as users of their own.
  chmodSync(dir, 0o777);
  await prepareNamespace(dir);
  const { peers, stop } = await startPeers(dir, { nodeOptions: PROXY_NODE_OPTIONS, rules: RULES });
  try {
    const memory = await measureMemory(peers);
    const results = [];
    for (const measure of planMeasures(peers)) results.push({ ...measure, results: await run(measure, Number(values.rounds)) });
    process.stdout.write(results.map((result) => `${result.title} (${result.unit})\n${renderResults(result.results)}\n\n`).join(""));
    process.stdout.write(`${renderMemory(memory)}\n`);
    mkdirSync(dirname(values.json), { recursive: true });
    const document = { benchmark: "proxy", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds: Number(values.rounds), results: results.map(({ title, unit, results: figures }) => ({ title, unit, figures })), memory };
    writeFileSync(values.json, `${JSON.stringify(document, undefined, 2)}\n`);
  } finally {
    stop();
    rmSync(dir, { recursive: true, force: true });
  }
  return 0;
}

async function enterNamespace(): Promise<number> {
  await provision([
    { program: "squid", packages: ["squid"], why: "a comparison" },
    { program: "tinyproxy", packages: ["tinyproxy-bin"], why: "a comparison" },
    { program: "haproxy", packages: ["haproxy"], why: "a comparison" },
    { program: "danted", packages: ["dante-server"], why: "a comparison" },
    { program: "wrk", packages: ["wrk"], why: "the load" },
    { program: "ip", packages: ["iproute2"], why: "a namespace of its own" },
  ]);
  const child = spawn("unshare", ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "--", process.execPath, ...process.argv.slice(1)], { stdio: "inherit", env: { ...process.env, [INSIDE]: "1" } });
  return await new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

async function prepareNamespace(dir: string): Promise<void> {
  await execa("ip", ["link", "set", "lo", "up"]);
  const hosts = join(dir, "hosts");
  writeFileSync(hosts, `127.0.0.1 localhost\n${ORIGIN.address} ${ORIGIN.host}\n`);
  await execa("mount", ["--bind", hosts, "/etc/hosts"]);
  // squid does not start where a killed one left its shared memory.
  await execa("mount", ["-t", "tmpfs", "tmpfs", "/dev/shm"]);
}

function planMeasures(peers: readonly Peer[]): Measure[] {
  const http = peers.filter((peer) => peer.http !== undefined);
  const socks = peers.filter((peer) => peer.socks !== undefined);
  const forward = peers.filter((peer) => peer.forward !== undefined);
  return [
    { title: "bulk through a CONNECT tunnel", unit: "MB/s", cases: [...http.map((peer) => client(peer, peer.http, "connect", "bulk", BULK_BYTES)), ...forward.map((peer) => client(peer, peer.forward, "direct", "bulk", BULK_BYTES))] },
    { title: "plain requests, connections kept", unit: "a second", cases: http.map((peer) => requests(peer, true)) },
    { title: "plain requests, a new connection each", unit: "a second", cases: http.map((peer) => requests(peer, false)) },
    { title: "new CONNECT tunnels", unit: "a second", cases: http.map((peer) => client(peer, peer.http, "connect", "open", TUNNELS)) },
    { title: "bulk through SOCKS5", unit: "MB/s", cases: socks.map((peer) => client(peer, peer.socks, "socks", "bulk", BULK_BYTES)) },
    { title: "new SOCKS5 connections", unit: "a second", cases: socks.map((peer) => client(peer, peer.socks, "socks", "open", TUNNELS)) },
    { title: "new CONNECT tunnels", unit: "a second of the proxy's CPU", cases: http.map((peer) => perCpuSecond(peer, client(peer, peer.http, "connect", "open", TUNNELS))) },
    { title: "new SOCKS5 connections", unit: "a second of the proxy's CPU", cases: socks.map((peer) => perCpuSecond(peer, client(peer, peer.socks, "socks", "open", TUNNELS))) },
  ];
}

function client({ name }: Peer, port: number | undefined, ask: "connect" | "socks" | "direct", kind: "bulk" | "open", amount: number): Case {
  const task = JSON.stringify({ port, ask, host: ORIGIN.host, kind, amount });
  return { name, run: async () => Number((await execa(process.execPath, [join(HERE, "client.ts"), task], { timeout: 120_000 })).stdout) };
}

/** Of the fast ones it is the client that sets the pace; their own work shows in the CPU time that they take for it. */
function perCpuSecond(peer: Peer, { name, run: open }: Case): Case {
  return {
    name,
    run: async () => {
      const before = readCpuSeconds(peer);
      await open();
      return TUNNELS / (readCpuSeconds(peer) - before);
    },
  };
}

/** Plain requests by wrk for a second, each naming its target in full as clients of a proxy do. */
function requests({ name, http = 0 }: Peer, kept: boolean): Case {
  const argv = ["-t", "1", "-c", "32", "-d", "1s", "-s", join(HERE, "absolute.lua"), `http://127.0.0.1:${http}`, "--", `http://${ORIGIN.host}/`, ...(kept ? [] : ["close"])];
  return {
    name,
    run: async () => {
      const { stdout } = await execa("wrk", argv, { timeout: 30_000 });
      const refused = /Non-2xx or 3xx responses: (?<count>\d+)/.exec(stdout)?.groups?.["count"];
      if (refused !== undefined) throw new Error(`${name} refused ${refused} requests`);
      return Number(/Requests\/sec:\s+(?<figure>[\d.]+)/.exec(stdout)?.groups?.["figure"] ?? Number.NaN);
    },
  };
}

async function run({ title, cases }: Measure, rounds: number): Promise<{ name: string; figure: Summary }[]> {
  process.stderr.write(`${title}…\n`);
  const samples = await measureInterleaved(cases, rounds);
  return cases.map(({ name }) => ({ name, figure: summarize(samples.get(name) ?? []) }));
}

type Memory = { name: string; idleKib: number; heldKib: number; perTunnelKib: number };

/** Of peers that have served nothing yet. */
async function measureMemory(peers: readonly Peer[]): Promise<Memory[]> {
  await sleep(3000);
  const memory: Memory[] = [];
  for (const peer of peers) {
    const port = peer.http ?? peer.socks;
    // A server with a limit of its own below that many is left out.
    if (port === undefined || peer.name === "tinyproxy") continue;
    const idleKib = readMemory(peer);
    const task = { port, ask: peer.http === undefined ? "socks" : "connect", host: ORIGIN.host, kind: "hold", amount: HELD };
    const child = spawn(process.execPath, [join(HERE, "client.ts"), JSON.stringify(task)], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const held = readMemory(peer);
    child.kill("SIGKILL");
    memory.push({ name: peer.name, idleKib, heldKib: held, perTunnelKib: (held - idleKib) / HELD });
  }
  return memory;
}

function renderResults(results: readonly { name: string; figure: Summary }[]): string {
  const [first] = results;
  const rows = results.map(({ name, figure: { q1, median, q3 } }) => [name, ...[q1, median, q3].map((value) => value.toFixed(0)), ((first?.figure.median ?? 0) / median).toFixed(2)]);
  return renderTable([["proxy", "q1", "median", "q3", "agentbox ÷ it"], ...rows]);
}

function renderMemory(memory: readonly Memory[]): string {
  const rows = memory.map(({ name, idleKib, heldKib, perTunnelKib }) => [name, (idleKib / 1024).toFixed(1), (heldKib / 1024).toFixed(1), perTunnelKib.toFixed(1)]);
  return renderTable([["memory", "idle MiB", `${HELD} tunnels MiB`, "KiB a tunnel"], ...rows]);
}

await runScript(main);
