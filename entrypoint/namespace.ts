import { existsSync, readdirSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { ENGINE_RESOLVER } from "../policy/box-spec.ts";
import { FirewallError } from "../policy/errors.ts";

/**
 * Throws FirewallError when the network namespace is not the box's own: rules programmed there would
 * close somebody else's network, and somebody else's processes could change them.
 */
export function requireOwnNamespace(sys = "/sys/class/net", proc = "/proc/net"): void {
  const foreign = readdirSync(sys).filter((name) => existsSync(`${sys}/${name}/device`) || existsSync(`${sys}/${name}/bridge`));
  if (foreign.length > 0) throw refuse(`${foreign.join(", ")} is an interface of the host`);
  const sockets = readAllBound(proc).filter((local) => !local.startsWith(EMBEDDED_RESOLVER));
  if (sockets.length > 0) throw refuse(`another program already listens at ${sockets[0]}`);
}

function refuse(what: string): FirewallError {
  return new FirewallError({
    what: `this network namespace is not the box's own: ${what}`,
    expected: "a namespace that only this box uses",
    fix: "start the box on a bridge network, not with --network host or container:ID",
  });
}

// The engine's embedded resolver, which lives in every box on a user-defined network.
const EMBEDDED_RESOLVER = "0B00007F";

// Socket states of proc_net(5): TCP_LISTEN, and TCP_CLOSE, which is what a bound UDP socket reports.
const BOUND_STATES = ["0A", "07"];

/** The engine's resolver where it lives in this box; null on the default bridge, which has none. */
export function findEngineResolver(proc = "/proc/net"): string | null {
  return readAllBound(proc).some((local) => local.startsWith(EMBEDDED_RESOLVER)) ? ENGINE_RESOLVER : null;
}

function readAllBound(proc: string): string[] {
  return ["tcp", "tcp6", "udp", "udp6"].flatMap((table) => readBoundSockets(`${proc}/${table}`));
}

/** Sockets that wait for others, as written in proc_net(5): ADDRESS:PORT in hex. */
function readBoundSockets(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([, local = "", , state = ""]) => (BOUND_STATES.includes(state) ? [local] : []));
}

/** The networks this box is on, as CIDR blocks; its siblings live there. */
export function readSubnets(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .flatMap(({ internal, cidr }) => (internal || cidr === null ? [] : [cidr]));
}
