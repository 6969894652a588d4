import type { Family } from "../policy/address.ts";
import { readFileSync } from "node:fs";
import { CapabilityError, FirewallError } from "../policy/errors.ts";
import type { RunCommand } from "./commands.ts";
import { renderEmptySets } from "../firewall/render-ipset.ts";
import { FAMILIES, type Plan } from "../firewall/rule.ts";

type Backend = "ipset" | "nft";

/** What the kernel of this box can do, found by doing it. */
export type Kernel = {
  backend: Backend;
  /** False where IPv6 tables cannot be programmed and IPv6 is switched off, so that none are needed. */
  ipv6: boolean;
  /** What `iptables-save` reports before the first change, of all tables. */
  saved: Record<Family, string>;
  /** The families whose web is led to the proxy. */
  redirected: readonly Family[];
  warnings: string[];
};

// Bit numbers from capability(7), include/uapi/linux/capability.h.
const NEEDED_CAPABILITIES = { KILL: 5, SETGID: 6, SETUID: 7, SETPCAP: 8, NET_ADMIN: 12, NET_RAW: 13 } as const;

/** Throws CapabilityError, naming every capability that this process lacks; `status` is /proc/self/status. */
export function checkCapabilities(status = readFileSync("/proc/self/status", "utf8")): void {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  const missing = Object.entries(NEEDED_CAPABILITIES).filter(([, bit]) => ((effective >> BigInt(bit)) & 1n) === 0n);
  if (missing.length === 0) return;
  throw new CapabilityError({
    what: `the engine withholds ${missing.map(([name]) => name).join(", ")}`,
    expected: "the capabilities that agentbox asks for with --cap-add",
    fix: "allow them in the engine (a rootless or managed engine may refuse NET_ADMIN), or start without AGENTBOX_FIREWALL=1",
  });
}

/** Reads the rules of all tables: those of the filter, and NAT. */
export const SAVE: Readonly<Record<Family, readonly string[]>> = { 4: ["iptables-save"], 6: ["ip6tables-save"] };

/** Makes the live sets exist and reads the present rules: whatever fails here tells what the kernel lacks. */
export async function probeKernel(run: RunCommand, closed: Plan): Promise<Kernel> {
  const [sets, saved4, saved6] = await Promise.allSettled([
    run(["ipset", "-exist", "restore"], renderEmptySets(closed)),
    run(SAVE[4]),
    run(SAVE[6]),
  ]);
  if (sets.status === "rejected" || saved4.status === "rejected") {
    const cause = sets.status === "rejected" ? sets.reason : saved4.status === "rejected" ? saved4.reason : undefined;
    return fallBackToNft(run, cause, closed);
  }
  const ipv6 = saved6.status === "fulfilled";
  if (!ipv6) requireNoIpv6(saved6.reason, "its tables cannot be programmed");
  return {
    backend: "ipset",
    ipv6,
    saved: { 4: saved4.value, 6: ipv6 ? saved6.value : "" },
    redirected: [],
    warnings: ipv6 ? [] : ["IPv6 tables cannot be programmed; IPv6 is switched off in this box, so nothing passes there"],
  };
}

/** Says that nft serves as the backend, or names what the kernel lacks for either. */
export async function fallBackToNft(run: RunCommand, cause: unknown, { redirect }: Pick<Plan, "redirect">): Promise<Kernel> {
  const reason = describe(cause);
  try {
    await run(["nft", "-c", "-f", "-"], redirect === undefined ? NFT_PROBE : `${NFT_PROBE}${NFT_NAT_PROBE}`);
  } catch (error) {
    throw new FirewallError(
      {
        what: `the kernel can program neither ipset (${reason}) nor nftables (${describe(error)})`,
        expected: "ip_set_hash_netport and xt_set, or nf_tables with concatenated interval sets (Linux 5.6)",
        fix: "load these modules on the host: modprobe -a ip_set_hash_netport xt_set nf_tables",
      },
      { cause },
    );
  }
  return { backend: "nft", ipv6: true, saved: { 4: "", 6: "" }, redirected: [], warnings: [`ipset cannot be used (${reason}); nftables sets do its job`] };
}

const NFT_PROBE = `table inet agentbox-probe {
  set probe {
    type ipv4_addr . inet_proto . inet_service
    flags interval,timeout
  }
  chain output {
    type filter hook output priority filter; policy drop;
    ct state established accept
    oifname lo fib saddr type != local drop
    ip saddr 127.0.0.11 ct status & dnat == 0 drop
    ip daddr 127.0.0.11 meta skuid 0 accept
    limit rate 50/second burst 200 packets log prefix "agentbox" group 5
    ip daddr . meta l4proto . th dport @probe accept
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
}
`;

const NFT_NAT_PROBE = `table inet agentbox-probe {
  chain nat {
    type nat hook output priority -101; policy accept;
    meta nfproto ipv4 meta l4proto tcp th dport 80 redirect to :64980
    meta nfproto ipv6 meta l4proto tcp th dport 80 redirect to :64980
  }
}
`;

// One rule per feature, so that a failure can be named; the words are those of iptables-extensions(8).
const IPTABLES_FEATURES: Readonly<Record<string, string>> = {
  "xt_conntrack (match conntrack)": "-m conntrack --ctstate ESTABLISHED -j ACCEPT",
  "xt_addrtype (match addrtype)": "-m addrtype --src-type LOCAL -j ACCEPT",
  "xt_set (match set)": "-m set --match-set agentbox-cut-4 dst,dst -j ACCEPT",
  "xt_owner (match owner)": "-m owner --uid-owner 0 -j ACCEPT",
  "xt_limit, nfnetlink_log (target NFLOG)": "-m limit --limit 50/sec --limit-burst 200 -j NFLOG --nflog-group 5",
  "ipt_REJECT (target REJECT)": "-p tcp -j REJECT --reject-with tcp-reset",
};

/** Names the features of iptables that this kernel lacks, by asking for each alone; changes nothing. */
export async function nameMissingFeatures(run: RunCommand): Promise<string[]> {
  const answers = await Promise.all(
    Object.entries(IPTABLES_FEATURES).map(async ([name, rule]) => {
      const text = `*filter\n:AGENTBOX-PROBE - [0:0]\n-A AGENTBOX-PROBE ${rule}\nCOMMIT\n`;
      const missing = await run(["iptables-restore", "--noflush", "--test"], text).then(
        () => false,
        () => true,
      );
      return missing ? [name] : [];
    }),
  );
  return answers.flat();
}

/** Throws unless IPv6 is off for every interface: a family without rules must have no packets. */
export function requireNoIpv6(cause: unknown, trouble: string): void {
  if (readIpv6Addresses().length === 0) return;
  throw new FirewallError(
    {
      what: `IPv6 is on in this box, but ${trouble} (${describe(cause)})`,
      expected: "ip6tables that works, or a box without IPv6",
      fix: "load ip6_tables and ip6table_nat on the host, or use a network without IPv6",
    },
    { cause },
  );
}

/** Addresses of this namespace that are not ::1, as in /proc/net/if_inet6 (32 hex digits, no colons). */
function readIpv6Addresses(): string[] {
  let text: string;
  try {
    text = readFileSync("/proc/net/if_inet6", "utf8");
  } catch (error) {
    // A kernel without IPv6 has no such file; any other failure must not pass for "no IPv6".
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.endsWith(" lo"))
    .map((line) => line.slice(0, 32));
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The families that have to be programmed. */
export function familiesOf(kernel: Kernel): readonly Family[] {
  return kernel.ipv6 ? FAMILIES : [4];
}
