import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { renderOptions } from "../build.ts";

/** A proxy that is measured, and the ports on which it takes what. */
export type Peer = { name: string; http?: number; socks?: number; forward?: number; pids: () => number[] };

/** The name of the origin, and where it is: the ports that Debian's squid lets through. */
export const ORIGIN = { host: "origin.bench.example", address: "127.0.0.1", ports: [80, 443] } as const;

const HERE = import.meta.dirname;
const OURS = { small: [3128, 8081], large: [3129, 8082] } as const;

/** Starts all peers with Debian's defaults, but for ports and where they write. `dir` is for their files. */
export async function startPeers(dir: string, options: { nodeOptions: readonly string[]; rules: number }): Promise<{ peers: Peer[]; stop: () => void }> {
  const children: ChildProcess[] = [];
  const run = (argv: readonly string[]): ChildProcess => {
    const [program = "", ...args] = argv;
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"], cwd: dir });
    children.push(child);
    return child;
  };
  const bundle = join(dir, "ours.mjs");
  // As it is shipped: Node takes memory for reading TypeScript.
  await build(renderOptions({ entry: relative(join(HERE, "../.."), join(HERE, "ours.ts")), output: bundle }));
  const ours = (settings: object): ChildProcess => run([process.execPath, ...options.nodeOptions, bundle, JSON.stringify(settings)]);
  run([process.execPath, join(HERE, "origin.ts"), ...ORIGIN.ports.map((port) => `${ORIGIN.address}:${port}`)]);
  const small = ours({ http: OURS.small[0], socks: OURS.small[1], rules: 60, log: join(dir, "small") });
  const large = ours({ http: OURS.large[0], socks: OURS.large[1], rules: options.rules, log: join(dir, "large") });
  const pipe = run([process.execPath, join(HERE, "pipe-proxy.ts"), "3130"]);
  const squid = run(["/usr/sbin/squid", "-N", "-f", writeSquid(dir)]);
  const tinyproxy = run(["/usr/bin/tinyproxy", "-d", "-c", writeTinyproxy(dir)]);
  const haproxy = run(["/usr/sbin/haproxy", "-db", "-f", writeHaproxy(dir)]);
  const dante = run(["/usr/sbin/danted", "-f", writeDante(dir)]);
  const peers: Peer[] = [
    { name: "agentbox", http: OURS.small[0], socks: OURS.small[1], pids: listFamily(small) },
    { name: `agentbox, ${options.rules} rules`, http: OURS.large[0], socks: OURS.large[1], pids: listFamily(large) },
    { name: "squid", http: 3131, pids: listFamily(squid) },
    { name: "tinyproxy", http: 3132, pids: listFamily(tinyproxy) },
    { name: "node pipes", http: 3130, pids: listFamily(pipe) },
    { name: "haproxy, tcp", forward: 3133, pids: listFamily(haproxy) },
    { name: "dante", socks: 3134, pids: listFamily(dante) },
  ];
  for (const { name, http, socks, forward } of peers) await waitFor(name, http ?? socks ?? forward ?? 0);
  return { peers, stop: () => children.forEach((child) => child.kill("SIGKILL")) };
}

/** Resident memory of a peer with its children, in KiB. */
export function readMemory({ pids }: Peer): number {
  return pids().reduce((sum, pid) => sum + Number(/^VmRSS:\s+(?<kib>\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.groups?.["kib"] ?? 0), 0);
}

const TICKS_A_SECOND = 100;

/** CPU time that a peer with its children has taken so far, those that ended included, in seconds (proc(5): fields 14 to 17 of stat). */
export function readCpuSeconds({ pids }: Peer): number {
  const ticks = pids().map((pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  });
  return ticks.reduce((sum, one) => sum + one, 0) / TICKS_A_SECOND;
}

function listFamily(child: ChildProcess): Peer["pids"] {
  return () => familyOf(child.pid ?? 0);
}

function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter((word) => word !== "").map(Number);
  return [pid, ...children.flatMap(familyOf)];
}

async function waitFor(name: string, port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await sleep(100);
  }
  throw new Error(`${name} does not listen on port ${port}`);
}

// Debian's file as it is, but for the port and where it writes.
function writeSquid(dir: string): string {
  const path = join(dir, "squid.conf");
  const shipped = readFileSync("/etc/squid/squid.conf", "utf8").replace(/^http_port .*$/m, "http_port 127.0.0.1:3131").replace(/^coredump_dir .*$/m, `coredump_dir ${dir}`);
  writeFileSync(path, `${shipped}\naccess_log stdio:${dir}/squid-access.log squid\ncache_log ${dir}/squid-cache.log\npid_filename ${dir}/squid.pid\n`);
  return path;
}

function writeTinyproxy(dir: string): string {
  const path = join(dir, "tinyproxy.conf");
  const shipped = readFileSync("/etc/tinyproxy/tinyproxy.conf", "utf8").replace(/^Port .*$/m, "Port 3132").replace(/^LogFile .*$/m, `LogFile "${dir}/tinyproxy.log"`).replace(/^PidFile .*$/m, `PidFile "${dir}/tinyproxy.pid"`).replace(/^(?:User|Group) .*$/gm, "");
  writeFileSync(path, shipped);
  return path;
}

function writeHaproxy(dir: string): string {
  const path = join(dir, "haproxy.cfg");
  writeFileSync(path, `defaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\nlisten forward\n bind 127.0.0.1:3133\n server origin ${ORIGIN.address}:443\n`);
  return path;
}

function writeDante(dir: string): string {
  const path = join(dir, "danted.conf");
  const pass = ["client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }", "socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }"];
  writeFileSync(path, [`logoutput: ${dir}/dante.log`, "internal: 127.0.0.1 port = 3134", "external: lo", "clientmethod: none", "socksmethod: none", "user.privileged: root", "user.unprivileged: root", ...pass, ""].join("\n"));
  return path;
}
