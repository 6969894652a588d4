import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { DECISION_LOG_DIR, PROXY_SOCKET } from "../policy/box-spec.ts";
import type { NameWall } from "../policy/policy-document.ts";
import { PROXY_SECRETS_FILE } from "../policy/proxy-secrets.ts";
import { actAs } from "./act-as.ts";
import { bindListeners, type Listener } from "./listeners.ts";
import { dropPrivileges, type Ids } from "../policy/privileges.ts";
import { KEEPER_IDS, PROXY_IDS } from "../policy/reserved-ids.ts";

export const PROGRAMS = import.meta.dirname;
/** Lies on the read-only root file system and belongs to root. */
export const PROGRAM_CACHE = `${PROGRAMS}/cache`;
/** Options of Node for the programs of a box. */
export const NODE_OPTIONS: readonly string[] = ["--disable-sigusr1"];
/** Of a proxy that only resolves: a small heap that grows slowly costs it few percent of its speed. */
export const RESOLVER_NODE_OPTIONS: readonly string[] = [...NODE_OPTIONS, "--max-semi-space-size=1", "--initial-heap-size=12", "--heap-growing-percent=30", "--v8-pool-size=1", "--expose-gc"];
/** Of a proxy that carries the web as well: what lives as long as a connection shall not be moved to the old space at once. */
export const PROXY_NODE_OPTIONS: readonly string[] = [...NODE_OPTIONS, "--max-semi-space-size=8", "--v8-pool-size=2", "--expose-gc"];

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

/** The keeper that was started. `tell` hands it what it waits for; `ended` is aborted when it has gone, which it should not. */
export type Started = { tell: (message: unknown) => void; ended: AbortSignal };

/** The web that the proxy reads. `siteProxy` are the addresses of the proxy that all of it leaves through, if any. */
export type Web = Pick<NameWall, "httpPort" | "socksPort"> & { siteProxy: readonly string[] };

/**
 * Starts keeper and proxy in sessions of their own, so that init adopts them: neither is ever a child of the
 * agent. They run beside the other steps; the keeper waits for `tell`, the proxy for the keeper. Without `web` the
 * proxy is the box's resolver and nothing else.
 *
 * Errors: FirewallError when a port of lo cannot be had.
 */
export async function startResolver(web: Web | undefined): Promise<Started> {
  const keeper = startKeeper();
  // The kernel takes whoever makes a socket for its owner, and lets only the proxy's answer in the resolver's name.
  const sockets = await actAs(PROXY_IDS, () => bindListeners(web));
  try {
    startProxy(sockets, web);
  } finally {
    // The proxy's copies stay; from these nothing was read.
    for (const { close } of sockets) close();
  }
  const ended = new AbortController();
  keeper.once("close", () => ended.abort());
  return { tell: (message) => void keeper.end(JSON.stringify(message)), ended: ended.signal };
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
  // Nothing is ever said on it, but its end is seen only by who reads.
  pipe.resume();
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

function startProxy(sockets: readonly Listener[], web: Web | undefined): void {
  const FIRST = 3;
  const descriptors = sockets.flatMap(({ option }, index) => [option, String(FIRST + index)]);
  const secrets = web === undefined ? [] : ["--secrets", `${DECISION_LOG_DIR}/${PROXY_SECRETS_FILE}`, ...web.siteProxy.flatMap((address) => ["--site-proxy", address])];
  const options = [...descriptors, "--keeper", PROXY_SOCKET, "--log", DECISION_LOG_DIR, ...secrets];
  const program = [process.execPath, ...(web === undefined ? RESOLVER_NODE_OPTIONS : PROXY_NODE_OPTIONS), `${PROGRAMS}/proxy.mjs`, ...options];
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
