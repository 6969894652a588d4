import { spawn } from "node:child_process";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, Socket } from "node:net";
import { DECISION_LOG_DIR, PROXY_SOCKET, RESOLVER_ADDRESSES } from "../policy/box-spec.ts";
import { FirewallError } from "../policy/errors.ts";
import { actAs } from "./act-as.ts";
import { dropPrivileges, type Ids } from "../policy/privileges.ts";
import { KEEPER_IDS, PROXY_IDS } from "../policy/reserved-ids.ts";

export const PROGRAMS = import.meta.dirname;
/** Lies on the read-only root file system and belongs to root. */
export const PROGRAM_CACHE = `${PROGRAMS}/cache`;
/** Options of Node for the programs of a box. */
export const NODE_OPTIONS: readonly string[] = ["--disable-sigusr1"];
/** Every box has a resolver of its own: a small heap that grows slowly costs it few percent of its speed. */
export const RESOLVER_NODE_OPTIONS: readonly string[] = [...NODE_OPTIONS, "--max-semi-space-size=1", "--initial-heap-size=12", "--heap-growing-percent=30", "--v8-pool-size=1", "--expose-gc"];
const DNS_PORT = 53;
const NOT_HERE = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];

// A shell that cannot fork ends, and the sockets with it: instead it becomes, without forking, a program that waits and
// becomes the shell again. Of what every Debian has, only Perl can.
const WAIT = "select undef, undef, undef, .1; exec @ARGV";
// A Node that gets one thread and not the next waits for it without end, so that it has to say in time that it runs.
const START = "alarm shift; exec @ARGV";
const KILLED_BY_ALARM = 142;
const RESTART_LOOP = [
  `limit=1; while :; do trap 'exec /usr/bin/perl -e "${WAIT}" /bin/sh -c "$0" "$0" "$@"' EXIT`,
  `/usr/bin/perl -e "${START}" "$limit" "$@"; [ $? = ${KILLED_BY_ALARM} ] && [ $limit -lt 4 ] && limit=$((limit + limit)) || limit=1; sleep 0.1; done # agentbox-resolver`,
].join("; ");

/** A process of the box's own that was started. `tell` hands the keeper what it waits for. */
export type Started = { tell: (message: unknown) => void };

/**
 * Starts keeper and proxy in sessions of their own, so that init adopts them: neither is ever a child of the
 * agent. They run beside the other steps; the keeper waits for `tell`, the proxy for the keeper.
 *
 * Errors: FirewallError when port 53 of lo cannot be had.
 */
export async function startResolver(): Promise<Started> {
  const keeper = startKeeper();
  // The kernel takes whoever makes a socket for its owner, and lets only the proxy's answer in the resolver's name.
  const sockets = await actAs(PROXY_IDS, bindResolver);
  try {
    startProxy(sockets);
  } finally {
    // The proxy's copies stay; from these nothing was read.
    for (const { close } of sockets) close();
  }
  return { tell: (message) => void keeper.end(JSON.stringify(message)) };
}

function startKeeper(): Socket {
  const child = spawn("/usr/bin/setsid", ["--fork", ...keepCapabilities(KEEPER_IDS), process.execPath, ...NODE_OPTIONS, `${PROGRAMS}/keeper.mjs`, PROXY_SOCKET], {
    cwd: "/",
    env: {},
    // Not the standard input, which Node closes when the first process of the fork has ended.
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  child.once("error", () => undefined);
  const [, , , pipe] = child.stdio;
  if (!(pipe instanceof Socket)) throw new Error("spawn made no pipe");
  // A start that fails ends, whoever still waits at the other end.
  pipe.unref();
  // A keeper that ended early is missed by the step that asks for it, which names the reason.
  pipe.on("error", () => undefined);
  return pipe;
}

/** The start of an argv that keeps two capabilities, which the programs it starts get as well, and gives up all others for good. */
function keepCapabilities({ uid, gid }: Ids): string[] {
  const kept = "-all,+net_admin,+net_raw";
  const sets = [`--bounding-set=${kept}`, `--inh-caps=${kept}`, `--ambient-caps=${kept}`];
  return ["/usr/bin/setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups", ...sets, "--no-new-privs", "--"];
}

type Listener = { option: "--udp4" | "--udp6" | "--tcp"; fd: number; close: () => void };

function startProxy(sockets: readonly Listener[]): void {
  const FIRST = 3;
  const options = sockets.flatMap(({ option }, index) => [option, String(FIRST + index)]);
  const program = [process.execPath, ...RESOLVER_NODE_OPTIONS, `${PROGRAMS}/proxy.mjs`, ...options, "--keeper", PROXY_SOCKET, "--log", DECISION_LOG_DIR];
  const child = spawn("/usr/bin/setsid", ["--fork", ...dropPrivileges(PROXY_IDS), ...restartForever(program)], {
    cwd: "/",
    env: { NODE_COMPILE_CACHE: PROGRAM_CACHE },
    stdio: ["ignore", "ignore", "ignore", ...sockets.map(({ fd }) => fd)],
  });
  child.once("error", () => undefined);
}

/**
 * The argv that starts a program again whenever it ends and meanwhile holds the sockets it inherits, so that their ports
 * are never free. The program has a second, at the next attempts two and four, to catch SIGALRM.
 */
export function restartForever(program: readonly string[]): string[] {
  return ["/bin/sh", "-c", RESTART_LOOP, RESTART_LOOP, ...program];
}

async function bindResolver(): Promise<Listener[]> {
  const pairs = await Promise.all([bindPair(RESOLVER_ADDRESSES[4], "--udp4"), bindPair(RESOLVER_ADDRESSES[6], "--udp6").catch(skipMissing)]);
  return pairs.flat();
}

async function bindPair(address: string, option: "--udp4" | "--udp6"): Promise<Listener[]> {
  try {
    return [await bindUdp(address, option), await bindTcp(address)];
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new FirewallError(
      {
        what: `the box's own resolver cannot have ${address} port ${DNS_PORT}: ${code}`,
        expected: "a namespace whose ports below 1024 are free to all (net.ipv4.ip_unprivileged_port_start=0)",
        fix: "start boxes with the agentbox command",
      },
      { cause: error },
    );
  }
}

/** Where IPv6 is off, lo has no IPv6 address, and no program can ask there. */
function skipMissing(error: unknown): Listener[] {
  const cause = error instanceof FirewallError ? error.cause : undefined;
  if (cause instanceof Error && "code" in cause && NOT_HERE.includes(String(cause.code))) return [];
  throw error;
}

async function bindUdp(address: string, option: "--udp4" | "--udp6"): Promise<Listener> {
  const socket = createSocket({ type: option === "--udp4" ? "udp4" : "udp6", ipv6Only: option === "--udp6" });
  socket.bind({ address, port: DNS_PORT, exclusive: true });
  await once(socket, "listening");
  return { option, fd: udpDescriptor(socket), close: () => void socket.close() };
}

async function bindTcp(address: string): Promise<Listener> {
  const server = createServer();
  server.listen({ host: address, port: DNS_PORT, exclusive: true });
  await once(server, "listening");
  return { option: "--tcp", fd: tcpDescriptor(server), close: () => void server.close() };
}

// Node has no public way to the descriptor of a socket; both places are looked at, and a missing one is an error.
function tcpDescriptor(server: Server): number {
  return readDescriptor(Reflect.get(server, "_handle"));
}

function udpDescriptor(socket: UdpSocket): number {
  const state = Object.getOwnPropertySymbols(socket).find((symbol) => symbol.description === "state symbol");
  const held: unknown = state === undefined ? undefined : Reflect.get(socket, state);
  return readDescriptor(typeof held === "object" && held !== null ? Reflect.get(held, "handle") : undefined);
}

function readDescriptor(handle: unknown): number {
  const fd: unknown = typeof handle === "object" && handle !== null ? Reflect.get(handle, "fd") : undefined;
  if (typeof fd !== "number" || fd < 0) throw new Error("this Node hides the descriptor of a socket");
  return fd;
}
