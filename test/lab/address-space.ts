import { readFile, writeFile } from "node:fs/promises";
import ipaddr from "ipaddr.js";
import { CapabilityError } from "../../policy/errors.ts";
import { mustRun } from "./command.ts";
import type { ServeOptions } from "./control-schema.ts";
import { RESETTING, SILENT } from "./special-names.ts";

type Family = 4 | 6;

// Everything an agent could dial. Multicast and ::/16 (loopback, mapped) stay as the kernel has them.
const INTERNET: Record<Family, readonly string[]> = {
  4: ["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"],
  6: ["64::/16", "100::/16", "2000::/3", "fc00::/7"],
};
const NONLOCAL_BIND = "/proc/sys/net/ipv6/ip_nonlocal_bind";

/**
 * Makes every address but those of the boxes' subnet local to this namespace, so that any destination is
 * answered here and nothing can be forwarded: there is no default route left and nothing to forward to.
 * Needs NET_ADMIN; runs a few `ip` processes.
 */
export async function claimInternet(options: Pick<ServeOptions, "interface" | "v4" | "v6">): Promise<void> {
  const { v4, v6 } = options;
  const lines = [
    `addr add ${v4.address}/${prefixLength(v4.subnet)} dev ${options.interface}`,
    `addr add ${v6.address}/${prefixLength(v6.subnet)} dev ${options.interface} nodad`,
    ...allBut(4, v4.subnet).map((prefix) => `route add local ${prefix} dev lo`),
    ...allBut(6, v6.subnet).map((prefix) => `route add local ${prefix} dev lo`),
    `route add blackhole ${SILENT.v4}/32 table local`,
    `route add blackhole ${SILENT.v6}/128 table local`,
  ];
  await mustRun(["ip", "-batch", "-"], { input: `${lines.join("\n")}\n` });
  // In a container the engine has set a default route; a batch cannot flush the one of IPv6.
  await Promise.all([mustRun(["ip", "-4", "route", "flush", "default"]), mustRun(["ip", "-6", "route", "flush", "default"]), allowNonlocalBind()]);
}

/** What TCP meets at the special addresses, whatever tests ask for. */
export const FIXED_HOSTS = { [RESETTING.v4]: "reset", [RESETTING.v6]: "reset" } as const;

/** The prefixes that together hold all of the internet except one subnet, at most one for each bit. */
export function allBut(family: Family, subnet: string): string[] {
  const hole = prefixBits(subnet);
  return INTERNET[family].flatMap((prefix) => {
    const bits = prefixBits(prefix);
    if (!hole.startsWith(bits)) return [prefix];
    return Array.from({ length: hole.length - bits.length }, (_, index) => {
      const depth = bits.length + index;
      return renderBits(family, hole.slice(0, depth) + (hole[depth] === "0" ? "1" : "0"));
    });
  });
}

function prefixBits(cidr: string): string {
  const [address, length] = ipaddr.parseCIDR(cidr);
  const bits = address.toByteArray().map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.slice(0, length);
}

function renderBits(family: Family, bits: string): string {
  const bytes = bits.padEnd(family === 4 ? 32 : 128, "0").match(/.{8}/g) ?? [];
  return `${ipaddr.fromByteArray(bytes.map((byte) => Number.parseInt(byte, 2))).toString()}/${bits.length}`;
}

function prefixLength(cidr: string): number {
  return ipaddr.parseCIDR(cidr)[1];
}

// IPv6 lets a UDP socket bind only to addresses of an interface unless this is set. In a container
// /proc/sys is read-only, and the engine has set it already.
async function allowNonlocalBind(): Promise<void> {
  if ((await readFile(NONLOCAL_BIND, "utf8")).trim() === "1") return;
  await writeFile(NONLOCAL_BIND, "1").catch((cause: unknown) => {
    throw new CapabilityError({ what: `the lab cannot set ${NONLOCAL_BIND}`, fix: "start the container with --sysctl net.ipv6.ip_nonlocal_bind=1" }, { cause });
  });
}
