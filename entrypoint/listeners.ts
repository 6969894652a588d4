import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { LISTENER_ADDRESSES, RESOLVER_ADDRESSES, TRANSPARENT_PORTS } from "../policy/box-spec.ts";
import { FirewallError } from "../policy/errors.ts";
import type { NameWall } from "../policy/policy-document.ts";

/** A socket that waits on lo: the option that hands it to the proxy, and how this process lets go of it. */
export type Listener = { option: "--udp4" | "--udp6" | "--tcp" | "--http" | "--socks" | "--web" | "--tls"; fd: number; close: () => void };

const DNS_PORT = 53;
const NOT_HERE = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];
const FAMILIES = [4, 6] as const;

/** A socket to make: `fix` says what to do where its port cannot be had. */
type Wanted = { option: Listener["option"]; address: string; port: number; what: string; expected: string; fix: string };

/**
 * Makes the sockets of a proxy, all of them or none: those of the box's resolver, and where there is a name wall those of the
 * proxies that programs are told of and those to which the web is led. Throws FirewallError naming a port that cannot be had.
 */
export async function bindListeners(web: Pick<NameWall, "httpPort" | "socksPort"> | undefined): Promise<Listener[]> {
  const wanted = [...listResolver(), ...(web === undefined ? [] : listWeb(web))].map(bindWanted);
  const settled = await Promise.allSettled(wanted);
  const bound = settled.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  const failed = settled.find((result) => result.status === "rejected");
  if (failed === undefined) return bound;
  // A socket that is left would keep this process from ending.
  for (const { close } of bound) close();
  throw failed.reason;
}

function listResolver(): Wanted[] {
  const about = {
    what: "the box's own resolver",
    expected: "a namespace whose ports below 1024 are free to all (net.ipv4.ip_unprivileged_port_start=0)",
    fix: "start boxes with the agentbox command",
  };
  return FAMILIES.flatMap((family) => {
    const address = RESOLVER_ADDRESSES[family];
    return ([family === 4 ? "--udp4" : "--udp6", "--tcp"] as const).map((option) => ({ option, address, port: DNS_PORT, ...about }));
  });
}

function listWeb({ httpPort, socksPort }: Pick<NameWall, "httpPort" | "socksPort">): Wanted[] {
  const alone = "start boxes with the agentbox command, which gives each a network of its own";
  const ports: Pick<Wanted, "option" | "port" | "fix">[] = [
    { option: "--http", port: httpPort, fix: "choose another port with proxy_url in [network_proxy]" },
    ...(socksPort === null ? [] : [{ option: "--socks" as const, port: socksPort, fix: "choose another port with socks_url in [network_proxy], or enable_socks5 = false" }]),
    { option: "--web", port: TRANSPARENT_PORTS.plain, fix: alone },
    { option: "--tls", port: TRANSPARENT_PORTS.tls, fix: alone },
  ];
  const about = { what: "the box's proxy", expected: "a port that nothing else in the box has" };
  return FAMILIES.flatMap((family) => ports.map((each) => ({ ...each, address: LISTENER_ADDRESSES[family], ...about })));
}

/** Where IPv6 is off, lo has no IPv6 address, and no program can ask there. */
async function bindWanted({ option, address, port, what, expected, fix }: Wanted): Promise<Listener[]> {
  try {
    return [await (option === "--udp4" || option === "--udp6" ? bindUdp({ option, address, port }) : bindTcp({ option, address, port }))];
  } catch (cause) {
    const code = codeOf(cause);
    if (address === LISTENER_ADDRESSES[6] && NOT_HERE.includes(code)) return [];
    throw new FirewallError({ what: `${what} cannot have ${address} port ${port}: ${code}`, expected, fix }, { cause });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

async function bindUdp({ option, address, port }: { option: "--udp4" | "--udp6"; address: string; port: number }): Promise<Listener> {
  const socket = createSocket({ type: option === "--udp4" ? "udp4" : "udp6", ipv6Only: option === "--udp6" });
  try {
    socket.bind({ address, port, exclusive: true });
    await once(socket, "listening");
  } catch (error) {
    socket.close();
    throw error;
  }
  return { option, fd: udpDescriptor(socket), close: () => void socket.close() };
}

async function bindTcp({ option, address, port }: Pick<Wanted, "option" | "address" | "port">): Promise<Listener> {
  const server = createServer();
  server.listen({ host: address, port, exclusive: true });
  await once(server, "listening");
  return { option, fd: tcpDescriptor(server), close: () => void server.close() };
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
