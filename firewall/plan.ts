import type { Family } from "../policy/address.ts";
import type { PublishedPort } from "../policy/box-spec.ts";
import { type Chain, FAMILIES, familyOf, IN_CHAIN, nameSets, OUT_CHAIN, type Plan, type Rule, type SetEntry } from "./rule.ts";

/** What the rules are made from: canonical addresses only, names are resolved before. */
export type PlanInput = {
  /** Addresses and ranges that the owner wrote, with their ports. */
  literal: readonly SetEntry[];
  /** Addresses that allowed names resolved to. */
  learned: readonly SetEntry[];
  resolvers: readonly string[];
  published: readonly PublishedPort[];
  /** The host's addresses on the box's network. */
  gateways: readonly string[];
  /** The box's own networks (CIDR blocks): siblings live there. */
  subnets: readonly string[];
  /** Whether port 22 is open to the entries that list it. */
  ssh: boolean;
};

/** Makes the complete rule list of both families. Pure; the order of the rules is normative (docs/security.md). */
export function planRules(input: PlanInput): Plan {
  return {
    sets: FAMILIES.flatMap((family) => planSets(input, family)),
    chains: { 4: planChains(input, 4), 6: planChains(input, 6) },
  };
}

function planSets(input: PlanInput, family: Family): Plan["sets"] {
  const names = nameSets(family);
  const ofFamily = (entries: readonly SetEntry[]): SetEntry[] =>
    uniqueEntries(entries.filter(({ range, port }) => familyOf(range) === family && (input.ssh || port !== 22)));
  return [
    { name: names.literal, family, entries: ofFamily(input.literal) },
    { name: names.learned, family, entries: ofFamily(input.learned) },
    { name: names.cut, family, entries: [] },
  ];
}

function uniqueEntries(entries: readonly SetEntry[]): SetEntry[] {
  const byKey = new Map(entries.map((entry) => [`${entry.range},${entry.protocol}:${entry.port}`, entry]));
  return [...byKey.values()];
}

function planChains(input: PlanInput, family: Family): Chain[] {
  return [
    { name: OUT_CHAIN, hook: "OUTPUT", rules: planOutput(input, family) },
    { name: IN_CHAIN, hook: "INPUT", rules: planInput(input, family) },
  ];
}

function planOutput(input: PlanInput, family: Family): Rule[] {
  const sets = nameSets(family);
  return [
    ...refuseRoutingHeaders(family),
    {
      why: "a resolver answer forged over lo from an address that is not ours",
      match: { outInterface: "lo", protocol: "udp", foreignSource: true },
      verdict: "drop",
    },
    { why: "connections that a deny has cut", match: { protocol: "tcp", set: sets.cut }, verdict: "tcp-reset" },
    { why: "replies, and what was allowed when it began", match: { established: true }, verdict: "accept" },
    { why: "the box's own services", match: { outInterface: "lo" }, verdict: "accept" },
    // 133 router solicitation, 135 and 136 neighbour discovery (RFC 4890, section 4.4.1): no IPv6 without them.
    ...allowIcmpv6(family, [133, 135, 136]),
    ...input.resolvers
      .filter((address) => familyOf(address) === family)
      .flatMap((destination): Rule[] => [
        { why: "DNS to the box's own resolver", match: { destination, protocol: "udp", port: 53 }, verdict: "accept" },
        { why: "DNS to the box's own resolver", match: { destination, protocol: "tcp", port: 53 }, verdict: "accept" },
      ]),
    ...[sets.literal, sets.learned].map(
      (set): Rule => ({ why: "SSH", match: { protocol: "tcp", port: 22, set }, verdict: input.ssh ? "accept" : "tcp-reset" }),
    ),
    ...[sets.literal, sets.learned].map((set): Rule => ({ why: "allowed", match: { set }, verdict: "accept" })),
    ...refuseTheRest("everything else"),
  ];
}

function planInput(input: PlanInput, family: Family): Rule[] {
  return [
    ...refuseRoutingHeaders(family),
    { why: "replies and path MTU news", match: { established: true }, verdict: "accept" },
    { why: "the box's own services", match: { inInterface: "lo" }, verdict: "accept" },
    // 134 router advertisement, 135 and 136 neighbour discovery.
    ...allowIcmpv6(family, [134, 135, 136]),
    ...input.published.flatMap((published) => allowPublished(input, family, published)),
    ...refuseTheRest("nobody connects to a box"),
  ];
}

/** A published port is for the host and what it lets in; siblings on the same bridge are neither. */
function allowPublished(input: PlanInput, family: Family, { port, protocol }: PublishedPort): Rule[] {
  const sources = (addresses: readonly string[]): string[] => addresses.filter((address) => familyOf(address) === family);
  return [
    ...sources(input.gateways).map(
      (source): Rule => ({ why: "published port, from the host", match: { source, protocol, port }, verdict: "accept" }),
    ),
    ...sources(input.subnets).map(
      (source): Rule => ({
        why: "published port, not for siblings",
        match: { source, protocol, port },
        verdict: protocol === "tcp" ? "tcp-reset" : "reject",
      }),
    ),
    { why: "published port", match: { protocol, port }, verdict: "accept" },
  ];
}

function refuseRoutingHeaders(family: Family): Rule[] {
  if (family === 4) return [];
  return [{ why: "an IPv6 routing header hides the real destination", match: { routingHeader: true }, verdict: "reject" }];
}

function allowIcmpv6(family: Family, types: readonly number[]): Rule[] {
  if (family === 4) return [];
  return types.map((icmpv6Type): Rule => ({ why: "IPv6 itself", match: { protocol: "icmpv6", icmpv6Type }, verdict: "accept" }));
}

/** TCP always by reset: a client that gets an ICMP error for a SYN waits a second for nothing. */
function refuseTheRest(why: string): Rule[] {
  return [
    { why, match: { protocol: "tcp" }, verdict: "tcp-reset" },
    { why, match: {}, verdict: "reject" },
  ];
}
