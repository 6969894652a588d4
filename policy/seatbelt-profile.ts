import { parseAddress } from "./address.ts";
import { type Complaint, ConfigError } from "./errors.ts";
import { isLoopback } from "./loopback.ts";
import { quote, quotePath } from "./parsed.ts";
import type { ListenAddress } from "./proxy-config.ts";
import { parseUnixSocket } from "./proxy-words.ts";

/** What programs may reach in a macOS sandbox beside files: ports of the proxy, and sockets of the machine. */
export type SeatbeltPlan = {
  /** Ports on localhost, ascending. */
  ports: readonly number[];
  /** Absolute paths of unix sockets. */
  sockets: readonly string[];
  /** Programs may listen on localhost. */
  localBinding: boolean;
  /** What was asked for and left out, a sentence each. */
  notes: readonly string[];
};

export type SeatbeltInput = {
  /** The proxy's listeners. */
  listeners: readonly ListenAddress[];
  /** `allow_unix_sockets` as it was written. */
  unixSockets: readonly string[];
  localBinding: boolean;
  /** SSH_AUTH_SOCK of the environment. */
  agentSocket: string | undefined;
};

/** Plans the profile. Throws ConfigError for a listener that a profile cannot name, and for sockets that are none. */
export function planSeatbelt({ listeners, unixSockets, localBinding, agentSocket }: SeatbeltInput): SeatbeltPlan {
  const complaints: Complaint[] = listeners.filter((listener) => !isOnLocalhost(listener)).map(refuseListener);
  const notes: string[] = [];
  const sockets = new Set<string>();
  for (const word of unixSockets) {
    const socket = parseUnixSocket(word);
    if (!socket.ok) complaints.push(socket.complaint);
    else if (socket.value.kind === "path") sockets.add(socket.value.path);
    else if (agentSocket === undefined || agentSocket === "") notes.push("SSH_AUTH_SOCK is not set: the ssh agent stays closed");
    else addAgent(agentSocket, sockets, complaints);
  }
  complaints.push(...[...sockets].filter((path) => UNSEEN.test(path)).map(refuseUnseen));
  if (complaints.length > 0) throw new ConfigError(complaints);
  return { ports: [...new Set(listeners.map(({ port }) => port))].toSorted((a, b) => a - b), sockets: [...sockets].flatMap(listSpellings).toSorted(), localBinding, notes: [...new Set(notes)] };
}

/** They would be shown escaped, which is another path; control characters are no part of a socket's path anyway. */
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

function refuseUnseen(path: string): Complaint {
  return { what: `${quotePath(path)} holds a character that nobody sees`, expected: "a path that can be printed", fix: "rename the socket" };
}

function addAgent(path: string, sockets: Set<string>, complaints: Complaint[]): void {
  const socket = parseUnixSocket(path);
  if (socket.ok && socket.value.kind === "path") sockets.add(socket.value.path);
  else complaints.push({ what: `SSH_AUTH_SOCK is ${quotePath(path)}, which is no socket`, expected: "an absolute path", fix: "correct the variable, or take ssh-agent out of allow_unix_sockets" });
}

/** A listener on every address is on localhost too. */
function isOnLocalhost({ address }: ListenAddress): boolean {
  const parsed = parseAddress(address);
  return parsed.ok && (parsed.value.value === 0n || isLoopback({ kind: "address", address: parsed.value }));
}

function refuseListener({ address, port }: ListenAddress): Complaint {
  return { what: `the proxy listens on ${quote(address)}, which a profile cannot name`, expected: "localhost: Seatbelt knows no other address", fix: `let it listen on 127.0.0.1:${port}` };
}

/** macOS keeps these directories below /private, and a profile is compared with the resolved path. */
function listSpellings(path: string): string[] {
  return /^\/(?:var|tmp|etc)\//.test(path) ? [path, `/private${path}`] : [path];
}

/**
 * Renders a profile in the language of sandbox-exec(1). Everything but the network is left as it is; of
 * rules that match, the last counts. `network*` holds unix sockets as well, the one of the system's resolver
 * among them: names are resolved by the proxy.
 */
export function renderSeatbeltProfile({ ports, sockets, localBinding, notes }: SeatbeltPlan): string {
  return [
    "(version 1)",
    "(allow default)",
    "",
    "; No network, no unix socket.",
    "(deny network*)",
    "",
    "; The proxy, which judges where it leads.",
    ...ports.map((port) => `(allow network-outbound (remote ip "localhost:${port}"))`),
    ...(sockets.length === 0 ? [] : ["", "; allow_unix_sockets", ...sockets.map((path) => `(allow network-outbound (remote unix-socket (path-literal ${renderString(path)})))`)]),
    ...(localBinding ? ["", "; allow_local_binding", '(allow network-bind (local ip "localhost:*"))', '(allow network-inbound (local ip "localhost:*"))'] : []),
    ...(notes.length === 0 ? [] : ["", ...notes.map((note) => `; ${note}`)]),
    "",
  ].join("\n");
}

/** A string of the profile's language. What cannot be printed was refused by the plan; here it is a bug. */
function renderString(text: string): string {
  if (UNSEEN.test(text)) throw new Error("a character in a profile that nobody sees");
  return `"${text.replaceAll(/["\\]/g, (char) => `\\${char}`)}"`;
}
