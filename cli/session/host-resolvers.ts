import { readFile } from "node:fs/promises";
import { parseAddress } from "../../policy/address.ts";

/** Where systemd keeps the real resolvers of a host whose own file names its local stub. */
const systemdFile = "/run/systemd/resolve/resolv.conf";
const hostFile = "/etc/resolv.conf";

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

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
