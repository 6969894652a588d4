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

/** Makes the sockets of the box's resolver. Throws FirewallError when port 53 of lo cannot be had. */
export async function bindResolver(): Promise<Listener[]> {
  return bindBoth(async (family) => {
    const address = RESOLVER_ADDRESSES[family];
    try {
      return [await bindUdp(address, family === 4 ? "--udp4" : "--udp6"), await bindTcp({ option: "--tcp", address, port: DNS_PORT })];
    } catch (error) {
      throw refuse(error, {
        what: `the box's own resolver cannot have ${address} port ${DNS_PORT}`,
        expected: "a namespace whose ports below 1024 are free to all (net.ipv4.ip_unprivileged_port_start=0)",
        fix: "start boxes with the agentbox command",
      });
    }
  });
}

type Wanted = { option: Listener["option"]; port: number; fix: string };

/** Makes the sockets of the name wall: the proxies that programs are told of, and those to which the web is led. Throws FirewallError naming a port that cannot be had. */
export async function bindWeb({ httpPort, socksPort }: Pick<NameWall, "httpPort" | "socksPort">): Promise<Listener[]> {
  const alone = "start boxes with the agentbox command, which gives each a network of its own";
  const wanted: Wanted[] = [
    { option: "--http", port: httpPort, fix: "choose another port with proxy_url in [network_proxy]" },
    ...(socksPort === null ? [] : [{ option: "--socks" as const, port: socksPort, fix: "choose another port with socks_url in [network_proxy], or enable_socks5 = false" }]),
    { option: "--web", port: TRANSPARENT_PORTS.plain, fix: alone },
    { option: "--tls", port: TRANSPARENT_PORTS.tls, fix: alone },
  ];
  const bound = await Promise.all(wanted.map(async (each) => bindBoth((family) => bindWanted(each, LISTENER_ADDRESSES[family]))));
  return bound.flat();
}

async function bindWanted({ option, port, fix }: Wanted, address: string): Promise<Listener[]> {
  try {
    return [await bindTcp({ option, address, port })];
  } catch (error) {
    throw refuse(error, { what: `the box's proxy cannot have ${address} port ${port}`, expected: "a port that nothing else in the box has", fix });
  }
}

/** Where IPv6 is off, lo has no IPv6 address, and no program can ask there. */
async function bindBoth(bind: (family: 4 | 6) => Promise<Listener[]>): Promise<Listener[]> {
  const bound = await Promise.all(FAMILIES.map((family) => bind(family).catch((error: unknown) => (family === 6 && isMissing(error) ? [] : Promise.reject(error)))));
  return bound.flat();
}

function isMissing(error: unknown): boolean {
  return error instanceof FirewallError && NOT_HERE.includes(codeOf(error.cause));
}

function refuse(cause: unknown, { what, expected, fix }: { what: string; expected: string; fix: string }): FirewallError {
  return new FirewallError({ what: `${what}: ${codeOf(cause)}`, expected, fix }, { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

async function bindUdp(address: string, option: "--udp4" | "--udp6"): Promise<Listener> {
  const socket = createSocket({ type: option === "--udp4" ? "udp4" : "udp6", ipv6Only: option === "--udp6" });
  socket.bind({ address, port: DNS_PORT, exclusive: true });
  await once(socket, "listening");
  return { option, fd: udpDescriptor(socket), close: () => void socket.close() };
}

async function bindTcp({ option, address, port }: { option: Listener["option"]; address: string; port: number }): Promise<Listener> {
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
