import { spawn } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { LOG_GROUP, LOG_PREFIX } from "../../firewall/rule.ts";
import { z } from "zod";
import { parseJson } from "./json-lines.ts";

/** A packet that no rule let through (or, in report mode, would have). */
export type LoggedPacket = { verdict: "refused" | "report"; transport: "tcp" | "udp" | "icmp" | "other"; address: string; port: number | null; uid: number };

const LIBRARIES = "/usr/lib";
const RESTART_MS = 1000;
const ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

const lineSchema = z.object({
  "oob.prefix": z.string(),
  "oob.uid": z.int(),
  "ip.protocol": z.int(),
  dest_ip: z.string(),
  dest_port: z.int().min(1).max(65_535).optional(),
});

const TRANSPORTS: Readonly<Record<number, LoggedPacket["transport"]>> = { 1: "icmp", 6: "tcp", 17: "udp", 58: "icmp" };

/** Reads one line of ulogd's JSON; undefined for packets that no program of the box sent, such as the kernel's own neighbour discovery. */
export function parsePacket(line: string): LoggedPacket | undefined {
  const parsed = lineSchema.safeParse(parseJson(line));
  if (!parsed.success) return undefined;
  const { "oob.prefix": prefix, "oob.uid": uid, "ip.protocol": protocol, dest_ip: address, dest_port: port } = parsed.data;
  const verdict = prefix === LOG_PREFIX["log-report"] ? "report" : "refused";
  return { verdict, transport: TRANSPORTS[protocol] ?? "other", address, port: port ?? null, uid };
}

/**
 * Runs ulogd, which reads the kernel's log group, and hands over each packet. `runDirectory` takes its
 * configuration. Without ulogd there is no record of refused packets, and nothing else is missing:
 * `onTrouble` is told once.
 */
export function startPacketLog(runDirectory: string, onPacket: (packet: LoggedPacket) => void, onTrouble: (sentence: string) => void): void {
  const plugins = findPlugins();
  if (plugins === undefined) return onTrouble("ulogd is missing: refused packets are not recorded");
  const file = `${runDirectory}/ulogd.conf`;
  writeFileSync(file, renderConfiguration(plugins), { mode: 0o600 });
  run(file, onPacket);
}

function run(file: string, onPacket: (packet: LoggedPacket) => void): void {
  // ulogd opens its output by path, which a socket pair does not have but a pipe does.
  const child = spawn("/bin/sh", ["-c", '"$0" -c "$1" | cat', "/usr/sbin/ulogd", file], { cwd: "/", env: ENVIRONMENT, stdio: ["ignore", "pipe", "ignore"] });
  let pending = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (text: string) => {
    const lines = (pending + text).split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) {
      const packet = parsePacket(line);
      if (packet !== undefined) onPacket(packet);
    }
  });
  child.once("error", () => undefined);
  child.once("close", () => setTimeout(() => run(file, onPacket), RESTART_MS));
}

/** The folder of ulogd's plugins, below that of this machine's architecture. */
function findPlugins(): string | undefined {
  return readdirSync(LIBRARIES)
    .map((name) => `${LIBRARIES}/${name}/ulogd`)
    .find((directory) => existsSync(`${directory}/ulogd_output_JSON.so`));
}

function renderConfiguration(plugins: string): string {
  const names = ["inppkt_NFLOG", "raw2packet_BASE", "filter_IP2STR", "output_JSON"];
  return [
    "[global]",
    'logfile="/dev/null"',
    ...names.map((name) => `plugin="${plugins}/ulogd_${name}.so"`),
    "stack=packets:NFLOG,base:BASE,text:IP2STR,json:JSON",
    "[packets]",
    `group=${LOG_GROUP}`,
    // Each packet at once: what waits in the kernel when the box ends is lost.
    "netlink_qthreshold=1",
    "netlink_qtimeout=1",
    "[json]",
    "sync=1",
    'file="/dev/stdout"',
    "",
  ].join("\n");
}
