import { readFileSync } from "node:fs";
import { isIP } from "node:net";

/** What the box itself knows about names: /etc/resolv.conf and /etc/hosts as the engine wrote them. */
export type ResolverFiles = {
  /** Addresses of the resolvers, in order. */
  servers: string[];
  /** Lower-case name to its addresses in the hosts file. */
  hosts: Map<string, string[]>;
};

/** Reads both files once, before anything in the box can have changed them. */
export function readResolverFiles(etc = "/etc"): ResolverFiles {
  return {
    servers: parseResolvConf(readFileSync(`${etc}/resolv.conf`, "utf8")),
    hosts: parseHosts(readFileSync(`${etc}/hosts`, "utf8")),
  };
}

/** Reads `nameserver` lines of resolv.conf(5); the zone of a link-local address is kept off, the rest is ignored. */
export function parseResolvConf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([keyword, address = ""]) => (keyword === "nameserver" && isIP(address) !== 0 ? [address] : []));
}

/** Reads hosts(5): an address and its names a line. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const word of names) {
      const name = word.toLowerCase();
      hosts.set(name, [...(hosts.get(name) ?? []), address]);
    }
  }
  return hosts;
}
