import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { RESOLVER_NODE_OPTIONS } from "../entrypoint/start-proxy.ts";
import { encodeQuery } from "../test/integration/proxy/dns-client.ts";
import { FakeUpstream } from "../test/integration/proxy/fake-upstream.ts";
import { allowing, type ResolverProcess, startResolver } from "../test/integration/proxy/resolver-process.ts";
import { runScript } from "./edge.ts";
import { measureInterleaved, renderTable, summarize, type Summary } from "./measure.ts";
import { provision } from "./provision.ts";

// Compares the box's resolver, its decision log on, with dnsmasq given the same list: answers from the cache and
// refusals, each server on one core of its own, the load generator on the others. Needs root and `npm run build`.

const UPSTREAM = "127.53.9.1";
const DNSMASQ_PORT = 5398;
const SIZES = [10, 10_000, 100_000];
/** Names that are asked for; each resolver has them in its cache. */
const ASKED = 1000;
/** Names learned for the figure of memory. */
const LEARNED = 10_000;
const SETTLE_MS = 5000;
const RATE = { perSecond: 5000, seconds: 4 } as const;
const SECONDS = 2;
const BUNDLE = join(import.meta.dirname, "../build/proxy.mjs");
const SERVER_CORE = ["taskset", "-c", "0"];
const LOAD_CORE = ["taskset", "-c", "1"];

type Server = { name: string; port: number };

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "15" }, json: { type: "string", default: join(import.meta.dirname, "../build/bench-dns.json") } } });
  await provision([
    { program: "dnsmasq", packages: ["dnsmasq-base"], why: "the comparison" },
    { program: "dnsperf", packages: ["dnsperf"], why: "the load" },
    { program: "taskset", packages: ["util-linux"], why: "one core for the server" },
  ]);
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "agentbox-bench-dns-"));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  stack.use(await FakeUpstream.listen(UPSTREAM, ({ name, type }) => (type === "A" ? [{ type: "A", name, ttl: 86_000, data: "93.184.216.34" }] : [])));
  const boxes: { size: number; box: ResolverProcess }[] = [];
  for (const size of SIZES) boxes.push({ size, box: stack.use(await startBox(size)) });
  const dnsmasq = startDnsmasq();
  stack.defer(() => void dnsmasq.kill());
  const files = writeQueries(dir);
  const servers: Server[] = [...boxes.map(({ size, box }) => ({ name: `agentbox, ${size} rules`, port: box.port })), { name: `dnsmasq, ${ASKED} rules`, port: DNSMASQ_PORT }];
  for (const { port } of servers) await runLoad(port, files.cached, 1);

  const cases = servers.flatMap(({ name, port }) => [
    { name: `cached: ${name}`, run: () => runLoad(port, files.cached, SECONDS) },
    { name: `refused: ${name}`, run: () => runLoad(port, files.refused, SECONDS) },
  ]);
  const samples = await measureInterleaved(cases, Number(values.rounds));
  const results = cases.map(({ name }) => ({ name, perSecond: summarize(samples.get(name) ?? []) }));
  const latency = [];
  for (const { name, port } of servers) latency.push({ name, ms: await measureLatency(port) });
  const memory = await measureMemory();
  print(results, latency, memory);
  mkdirSync(dirname(values.json), { recursive: true });
  const document = { benchmark: "dns", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds: Number(values.rounds), results, latency, memory };
  writeFileSync(values.json, `${JSON.stringify(document, undefined, 2)}\n`);
}

function startBox(size: number): Promise<ResolverProcess> {
  const names = Array.from({ length: Math.max(size, 1) }, (_, index) => (index === 0 ? "*.asked.example.com" : `host${index}.team${index % 100}.example.net`));
  return startResolver(allowing(names), { upstreams: [UPSTREAM] }, [...SERVER_CORE, process.execPath, ...RESOLVER_NODE_OPTIONS, BUNDLE]);
}

/** The list as dnsmasq knows it: one server line a name, everything else has no address. */
function startDnsmasq(): ChildProcess {
  const lines = Array.from({ length: ASKED }, (_, index) => `--server=/${askedName(index)}/${UPSTREAM}`);
  const options = ["--keep-in-foreground", `--port=${DNSMASQ_PORT}`, "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file=", "--cache-size=10000", "--address=/#/"];
  return spawn("taskset", [...SERVER_CORE.slice(1), "dnsmasq", ...options, ...lines], { stdio: ["ignore", "ignore", "inherit"] });
}

function askedName(index: number): string {
  return `name${index}.asked.example.com`;
}

function writeQueries(dir: string): { cached: string; refused: string } {
  const files = { cached: join(dir, "cached"), refused: join(dir, "refused") };
  const indexes = Array.from({ length: ASKED }, (_, index) => index);
  writeFileSync(files.cached, indexes.map((index) => `${askedName(index)} A\n`).join(""));
  writeFileSync(files.refused, indexes.map((index) => `name${index}.refused.example.org A\n`).join(""));
  return files;
}

/** Answers a second. */
async function runLoad(port: number, queries: string, seconds: number): Promise<number> {
  const args = [...LOAD_CORE.slice(1), "dnsperf", "-s", "127.0.0.1", "-p", String(port), "-d", queries, "-l", String(seconds), "-q", "100", "-c", "4"];
  const { stdout } = await execa("taskset", args);
  const figure = /Queries per second:\s+(?<figure>[0-9.]+)/.exec(stdout)?.groups?.["figure"];
  const lost = /Queries lost:\s+(?<lost>[0-9]+)/.exec(stdout)?.groups?.["lost"];
  if (figure === undefined || lost !== "0") throw new Error(`dnsperf: ${stdout}`);
  return Number(figure);
}

/** Milliseconds from question to answer at a steady rate: median and the highest but one in a hundred. */
async function measureLatency(port: number): Promise<{ median: number; p99: number }> {
  const socket = createSocket("udp4");
  socket.connect(port, "127.0.0.1");
  await once(socket, "connect");
  const sent = new Map<number, number>();
  const times: number[] = [];
  socket.on("message", (message) => {
    const at = sent.get(message.readUInt16BE(0));
    if (at !== undefined) times.push(performance.now() - at);
  });
  const started = performance.now();
  for (let id = 0; id < RATE.perSecond * RATE.seconds; ) {
    const due = Math.min(RATE.perSecond * RATE.seconds, ((performance.now() - started) * RATE.perSecond) / 1000);
    for (; id < due; id += 1) {
      sent.set(id & 0xff_ff, performance.now());
      socket.send(encodeQuery({ name: askedName(id % ASKED), id: id & 0xff_ff }));
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  socket.close();
  const sorted = times.toSorted((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN, p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN };
}

type Memory = { freshMiB: number; burstMiB: number; learnedMiB: number };

/** Resident memory in MiB: at first, when ten thousand names, A and AAAA, were just learned as fast as it goes, and some seconds later. */
async function measureMemory(): Promise<Memory> {
  await using box = await startBox(10);
  const freshMiB = readResident(box.pid());
  const socket = createSocket("udp4");
  socket.connect(box.port, "127.0.0.1");
  await once(socket, "connect");
  const heard = { answers: 0 };
  socket.on("message", () => {
    heard.answers += 1;
  });
  for (let index = 0; index < LEARNED * 2; index += 1) {
    socket.send(encodeQuery({ name: askedName(index >> 1), type: index % 2 === 0 ? "A" : "AAAA", id: index & 0xff_ff }));
    while (index - heard.answers > 100) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  while (heard.answers < LEARNED * 2) await new Promise((resolve) => setTimeout(resolve, 10));
  socket.close();
  if (box.keeper.learned.length !== LEARNED) throw new Error(`${box.keeper.learned.length} names were learned`);
  const burstMiB = readResident(box.pid());
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return { freshMiB, burstMiB, learnedMiB: readResident(box.pid()) };
}

function readResident(pid: number): number {
  return Number(/VmRSS:\s+(?<kib>\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.groups?.["kib"]) / 1024;
}

type Latency = { name: string; ms: { median: number; p99: number } };

function print(results: readonly { name: string; perSecond: Summary }[], latency: readonly Latency[], memory: Memory): void {
  const base = (name: string): number => results.find((result) => result.name === `${name.split(":")[0]}: dnsmasq, ${ASKED} rules`)?.perSecond.median ?? Number.NaN;
  const rows = results.map(({ name, perSecond: { median, q1, q3 } }) => [name, ...[median, q1, q3].map((value) => value.toFixed(0)), (median / base(name)).toFixed(2)]);
  process.stdout.write(`${renderTable([["answers a second", "median", "q1", "q3", "to dnsmasq"], ...rows])}\n\n`);
  const times = latency.map(({ name, ms: { median, p99 } }) => [name, median.toFixed(2), p99.toFixed(2)]);
  process.stdout.write(`${renderTable([[`ms at ${RATE.perSecond} a second`, "median", "p99"], ...times])}\n\n`);
  process.stdout.write(`resident memory: ${memory.freshMiB.toFixed(1)} MiB at first, ${memory.burstMiB.toFixed(1)} MiB when ${LEARNED} names were just learned, ${memory.learnedMiB.toFixed(1)} MiB seconds later\n`);
}

await runScript(main);
