import { readFile } from "node:fs/promises";
import { parseAddress } from "../../policy/address.ts";
import { EngineError } from "../../policy/errors.ts";
import type { Engine } from "../engine/engine.ts";

/** Where systemd keeps the real resolvers of a host whose own file names its local stub. */
const systemdFile = "/run/systemd/resolve/resolv.conf";
const hostFile = "/etc/resolv.conf";

/** Where to find a resolver is a question of the host, or of the user. */
const noResolver = {
  what: "no resolver is known that a box could ask",
  expected: "a nameserver in /etc/resolv.conf of this machine that is not the machine itself",
  fix: "name one with --dns ADDRESS, or as `dns` in [network] of the configuration",
};

export type UpstreamInput = { dns: readonly string[]; resolvers: readonly string[]; engine: Pick<Engine, "sameKernel">; firewall: boolean };

/**
 * Chooses whom the box's own resolver asks: whom the user named, else whom the host asks. An engine in a
 * machine of its own has resolvers of its own, too. Throws EngineError where nobody is left.
 */
export function chooseUpstreams({ dns, resolvers, engine, firewall }: UpstreamInput): readonly string[] | "ask-engine" {
  if (dns.length > 0) return dns;
  if (!firewall) return [];
  if (!engine.sameKernel) return "ask-engine";
  if (resolvers.length === 0) throw new EngineError(noResolver);
  return resolvers;
}

/** Reads the addresses that an engine's resolver asks on this host; empty where the engine runs in a machine of its own. */
export async function readHostResolvers(): Promise<string[]> {
  const host = await readResolvers(hostFile);
  const direct = host.filter((address) => !isLoopback(address));
  if (direct.length > 0 || host.length === 0) return direct;
  return (await readResolvers(systemdFile)).filter((address) => !isLoopback(address));
}

async function readResolvers(file: string): Promise<string[]> {
  return parseResolvers(await readFile(file, "utf8").catch(() => ""));
}

/** Parses the `nameserver` lines of a resolv.conf; addresses come out canonical, without zone. */
export function parseResolvers(text: string): string[] {
  const words = text.split("\n").flatMap((line) => /^\s*nameserver\s+([^\s%]+)/.exec(line)?.slice(1) ?? []);
  return words.flatMap((word) => {
    const address = parseAddress(word);
    return address.ok ? [address.value.text] : [];
  });
}

/**
 * Parses the resolv.conf of a box as the engine writes it. Where the engine's embedded resolver stands in it, the
 * resolvers that this one asks follow in a comment: `# ExtServers: [host(192.0.2.53) 2001:db8::53]`.
 */
export function parseBoxResolvers(text: string): string[] {
  const direct = parseResolvers(text).filter((address) => !isLoopback(address));
  if (direct.length > 0) return direct;
  const words = /^#\s*ExtServers:\s*\[(.*)\]/m.exec(text)?.[1]?.split(/\s+/) ?? [];
  const nameservers = words.map((word) => `nameserver ${/^host\((.*)\)$/.exec(word)?.[1] ?? word}`);
  return parseResolvers(nameservers.join("\n")).filter((address) => !isLoopback(address));
}

/** Throws the error for a box without resolver. */
export function requireUpstreams(found: readonly string[]): readonly string[] {
  if (found.length === 0) throw new EngineError(noResolver);
  return found;
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
