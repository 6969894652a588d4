import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { escapeUnseen } from "../../policy/parsed.ts";

const LISTENING = "0A";
const MAX_COMMAND = 120;

/** Names the program that listens on a port, `process PID (COMMAND)`; undefined where this system or another user's process does not tell. */
export function findPortHolder(port: number): string | undefined {
  const sockets = new Set(["tcp", "tcp6"].flatMap((table) => listSockets(table, port)));
  return sockets.size === 0 ? undefined : findHolder((link) => sockets.has(link));
}

/** As `findPortHolder`, for a file that another process than this one has open. */
export function findFileHolder(file: string): string | undefined {
  const real = realPath(file);
  return real === undefined ? undefined : findHolder((link, pid) => link === real && pid !== String(process.pid));
}

function findHolder(holds: (link: string, pid: string) => boolean): string | undefined {
  for (const pid of list("/proc").filter((name) => /^[0-9]+$/.test(name))) {
    if (list(`/proc/${pid}/fd`).some((fd) => holds(readLink(`/proc/${pid}/fd/${fd}`), pid))) return `process ${pid} (${readCommand(pid)})`;
  }
  return undefined;
}

/** The sockets of /proc/net/tcp (proc(5)) that listen on a port: local address in the second column, state in the fourth, inode in the tenth. */
function listSockets(table: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return read(`/proc/net/${table}`)
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(wanted) === true && columns[3] === LISTENING)
    .map((columns) => `socket:[${columns[9]}]`);
}

function readCommand(pid: string): string {
  const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  return escapeUnseen(command.length > MAX_COMMAND ? `${command.slice(0, MAX_COMMAND)}…` : command);
}

// What cannot be read belongs to somebody else, is gone already, or is no part of this system.

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function readLink(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return "";
  }
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}
