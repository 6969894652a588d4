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
  sourcePort?: number;
  /** Address or CIDR block. */
  source?: string;
  destination?: string;
  /** Destination address, protocol and port are an element of the set. */
  set?: string;
  established?: true;
  /** The kernel knows no connection that the packet could belong to or begin. */
  invalid?: true;
  /** The packet asks for a TCP connection (SYN alone), whatever the kernel takes it for; with `established`, for one within another. */
  begins?: true;
  /** The packet is of a connection whose destination the kernel does not rewrite; the news that one was refused is not. */
  notTranslated?: true;
  /** The source address is not an address of this namespace. */
  foreignSource?: true;
  /** The packet has an IPv6 routing header. */
  routingHeader?: true;
  /** The socket that sends the packet belongs to this user. There is no opposite: to nftables a packet without a socket is nobody's. */
  uid?: number;
};

/**
 * `tcp-reset` needs `protocol: "tcp"`; `reject` answers with ICMP administratively prohibited. `log-refused`
 * and `log-report` hand a copy of the packet to the keeper, at most so many a second, and go on. `return` goes on
 * where the chain was jumped to from. `redirect`, in a NAT chain only, leads the connection to a port of lo.
 */
type Verdict = "accept" | "drop" | "reject" | "tcp-reset" | "log-refused" | "log-report" | "return" | { jump: string } | { redirect: number };

export type Rule = { why: string; match: Match; verdict: Verdict };

/** A chain without a hook is jumped to by rules of the others. */
export type Chain = { name: string; hook?: "OUTPUT" | "INPUT"; rules: readonly Rule[] };

export type SetEntry = { range: string; protocol: "tcp" | "udp"; port: number };

export type KernelSet = { name: string; family: Family; entries: readonly SetEntry[] };

export type SetNames = { literal: string; learned: string; cut: string; direct: string };

/** Everything that the kernel is told, for both families. Only literal sets have entries here: the keeper fills the others. */
export type Plan = {
  sets: readonly KernelSet[];
  /** Of the filter: what may pass. */
  chains: Readonly<Record<Family, readonly Chain[]>>;
  /** Of NAT, jumped to from OUTPUT: what goes to the proxy instead of where it was sent. Undefined where addresses alone decide. */
  redirect: Readonly<Record<Family, Chain>> | undefined;
};

export const FAMILIES: readonly Family[] = [4, 6];

/** The kernel's log group that the keeper reads, the prefixes in it, and how much of a flood it passes on. */
export const LOG_GROUP = 5;
export const LOG_PREFIX = { "log-refused": "agentbox-refused", "log-report": "agentbox-report" } as const;
export const LOG_LIMIT = { perSecond: 50, burst: 200 } as const;
export const OUT_CHAIN = "AGENTBOX-OUT";
export const IN_CHAIN = "AGENTBOX-IN";
/** What is left of the web when the redirect has done its work. */
export const WEB_CHAIN = "AGENTBOX-WEB";
export const REDIRECT_CHAIN = "AGENTBOX-REDIRECT";

/** Names of the sets of one family; tests and the manual plan read them. */
export function nameSets(family: Family): SetNames {
  return { literal: `agentbox-literal-${family}`, learned: `agentbox-learned-${family}`, cut: `agentbox-cut-${family}`, direct: `agentbox-direct-${family}` };
}

/** Tells the family of an address or CIDR block that is known to be valid. */
export function familyOf(address: string): Family {
  return address.includes(":") ? 6 : 4;
}
