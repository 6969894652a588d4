import type { Family } from "../policy/address.ts";

// The rule list as data. Renderers turn it into text for iptables or nftables; nothing else decides about packets.

/** What a rule looks at; every key given must hold. */
export type Match = {
  outInterface?: "lo";
  inInterface?: "lo";
  protocol?: "tcp" | "udp" | "icmpv6";
  icmpv6Type?: number;
  /** Port of the destination. */
  port?: number;
  /** Address or CIDR block. */
  source?: string;
  destination?: string;
  /** Destination address, protocol and port are an element of the set. */
  set?: string;
  established?: true;
  /** The source address is not an address of this namespace. */
  foreignSource?: true;
  /** The packet has an IPv6 routing header. */
  routingHeader?: true;
};

/** `tcp-reset` needs `protocol: "tcp"`; `reject` answers with ICMP administratively prohibited. */
type Verdict = "accept" | "drop" | "reject" | "tcp-reset";

export type Rule = { why: string; match: Match; verdict: Verdict };

export type Chain = { name: string; hook: "OUTPUT" | "INPUT"; rules: readonly Rule[] };

export type SetEntry = { range: string; protocol: "tcp" | "udp"; port: number };

export type KernelSet = { name: string; family: Family; entries: readonly SetEntry[] };

/** Everything that the kernel is told, for both families. */
export type Plan = {
  sets: readonly KernelSet[];
  chains: Readonly<Record<Family, readonly Chain[]>>;
};

export const FAMILIES: readonly Family[] = [4, 6];
export const OUT_CHAIN = "AGENTBOX-OUT";
export const IN_CHAIN = "AGENTBOX-IN";

/** Names of the sets of one family; tests and the manual plan read them. */
export function nameSets(family: Family): { literal: string; learned: string; cut: string } {
  return { literal: `agentbox-literal-${family}`, learned: `agentbox-learned-${family}`, cut: `agentbox-cut-${family}` };
}

/** Tells the family of an address or CIDR block that is known to be valid. */
export function familyOf(address: string): Family {
  return address.includes(":") ? 6 : 4;
}
