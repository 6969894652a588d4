import { commandOf, readScript, type SimpleCommand } from "./command-line.ts";
import { unwrapCommand } from "./command-wrapper.ts";
import { isLoopback } from "./loopback.ts";
import { parseHost } from "./host-name.ts";
import type { PreflightMode } from "./preflight-mode.ts";
import type { Need } from "./preflight-need.ts";
import { readAuthority } from "./preflight-place.ts";
import { findToolNeeds } from "./preflight-tools.ts";

/** What is to run: words as a program gets them, or a text that a shell reads. */
export type CommandLine = { words: readonly string[] } | { script: string };

/** Programs that start programs, one in the other. */
const MAX_DEPTH = 16;
/** Nobody reads more, and judging each takes time. */
const MAX_NEEDS = 200;

/**
 * Finds what a command line obviously needs of the network and of sockets, each once, in the order of its text. Only what is
 * written there counts: no file is read, nothing is run, and what a shell would first have to work out is left out. `strict`
 * takes URLs among the arguments only and looks into no script within the command. This machine itself is no need.
 */
export function findNeeds(line: CommandLine, mode: PreflightMode): Need[] {
  const found = new Map<string, Need>();
  const add = (need: Need): void => {
    if (found.size >= MAX_NEEDS || (need.kind === "host" && isHere(need.host))) return;
    if (mode === "strict" && (need.kind === "socket" || need.form !== "url")) return;
    const key = JSON.stringify(need.kind === "host" ? [need.host.toLowerCase(), need.port, need.web, need.method] : [need.socket]);
    const earlier = found.get(key);
    if (earlier === undefined || (need.kind === "socket" && need.sure)) found.set(key, need);
  };
  const takeScript = (text: string, depth: number): void => {
    const { commands, files } = readScript(text);
    for (const command of commands) take(command, depth);
    for (const file of files) findDeviceNeed(file).forEach(add);
  };
  const take = (command: SimpleCommand, depth: number): void => {
    if (depth > MAX_DEPTH || command.words.length === 0) return;
    const inner = unwrapCommand(command);
    if (inner === undefined) return findToolNeeds(command).forEach(add);
    for (const each of inner.commands) take(each, depth + 1);
    if (mode === "heuristic") for (const script of inner.scripts) takeScript(script, depth + 1);
  };
  if ("script" in line) takeScript(line.script, 0);
  else take(commandOf(line.words), 0);
  return [...found.values()];
}

/** bash connects where a redirection names /dev/tcp/HOST/PORT. */
function findDeviceNeed(file: string): Need[] {
  const { host = "", port = "" } = /^\/dev\/(?:tcp|udp)\/(?<host>[^/]+)\/(?<port>[0-9]{1,5})$/.exec(file)?.groups ?? {};
  const place = readAuthority(host.includes(":") ? `[${host}]` : host, Number(port));
  return place === undefined ? [] : [{ kind: "host", program: "bash", form: "remote", ...place }];
}

/** Programs of a box reach each other without anybody's leave. */
function isHere(text: string): boolean {
  const host = parseHost(text);
  return host.ok && isLoopback(host.value);
}
