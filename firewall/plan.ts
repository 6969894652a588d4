import type { Family } from "../policy/address.ts";
import { ENGINE_RESOLVER, type PublishedPort, RESOLVER_ADDRESSES } from "../policy/box-spec.ts";
import type { PolicyDocument } from "../policy/policy-document.ts";
import { SPECIAL_RANGES } from "../policy/special-ranges.ts";
import { allowListeners, guardSiteProxy, type NameWallInput, planRedirect, planWeb, planWebChain, refuseWithin } from "./plan-web.ts";
import { refuse, refuseAloud } from "./refuse.ts";
import { type Chain, FAMILIES, familyOf, IN_CHAIN, type Match, nameSets, OUT_CHAIN, type Plan, type Rule, type SetEntry } from "./rule.ts";

/** What the rules are made from: canonical addresses only, names are resolved before. */
export type PlanInput = {
  /** Addresses and ranges that the owner wrote, names of the hosts file, and pinned private names, with their ports. */
  literal: readonly SetEntry[];
  /** The resolvers that the box's own one asks. */
  upstreams: readonly string[];
  /** The only user who may ask them. */
  proxyUid: number;
  published: readonly PublishedPort[];
  /** The host's addresses on the box's network. */
  gateways: readonly string[];
  /** The box's own networks (CIDR blocks): siblings live there. */
  subnets: readonly string[];
  /** Port 22: open to the entries that list it, to every public address, or closed. */
  ssh: PolicyDocument["ssh"];
  /** Report mode: what nothing allows is let through to public addresses, and logged. */
  report: boolean;
  /** What leads the web to the proxy; undefined where addresses alone decide. */
  nameWall: NameWallInput | undefined;
};

/** Makes the complete rule list of both families. Pure; the order of the rules is normative (docs/security.md). */
export function planRules(input: PlanInput): Plan {
  const { proxyUid, nameWall } = input;
  return {
    sets: planSets(input),
    chains: { 4: planChains(input, 4), 6: planChains(input, 6) },
    redirect: nameWall && { 4: planRedirect(proxyUid, 4), 6: planRedirect(proxyUid, 6) },
  };
}

type SetInput = Pick<PlanInput, "literal" | "ssh"> & Partial<Pick<PlanInput, "nameWall">>;

/** Makes the sets alone: what a live change of the policy replaces. */
export function planSets(input: SetInput): Plan["sets"] {
  return FAMILIES.flatMap((family) => planSetsOf(input, family));
}

function planSetsOf(input: SetInput, family: Family): Plan["sets"] {
  const names = nameSets(family);
  const ofFamily = input.literal.filter(({ range, port }) => familyOf(range) === family && (input.ssh !== "off" || port !== 22));
  return [
    { name: names.literal, family, entries: uniqueEntries(ofFamily) },
    { name: names.learned, family, entries: [] },
    { name: names.cut, family, entries: [] },
    ...(input.nameWall === undefined ? [] : [{ name: names.direct, family, entries: [] }]),
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
    ...(input.nameWall === undefined ? [] : [planWebChain(input.proxyUid, family)]),
  ];
}

function planOutput(input: PlanInput, family: Family): Rule[] {
  const { nameWall, proxyUid } = input;
  const sets = nameSets(family);
  const upstreams = input.upstreams.filter((address) => familyOf(address) === family);
  return [
    ...refuseRoutingHeaders(family),
    {
      why: "a resolver answer forged over lo from an address that is not ours",
      match: { outInterface: "lo", protocol: "udp", foreignSource: true },
      verdict: "drop",
    },
    { why: "connections that a deny has cut", match: { protocol: "tcp", set: sets.cut }, verdict: "tcp-reset" },
    ...dropInvalid(),
    ...guardEngineResolver(family),
    ...guardResolvers(input, family, upstreams),
    ...guardOwnResolver(input, family),
    ...(nameWall === undefined ? [] : refuseWithin()),
    { why: "replies, and what was allowed when it began", match: { established: true }, verdict: "accept" },
    { why: "the box's own services", match: { outInterface: "lo" }, verdict: "accept" },
    ...(nameWall === undefined ? [] : allowListeners(family)),
    // 133 router solicitation, 135 and 136 neighbour discovery (RFC 4890, section 4.4.1): no IPv6 without them.
    ...allowIcmpv6(family, [133, 135, 136]),
    ...(nameWall === undefined ? [] : [...guardSiteProxy(nameWall, proxyUid, family), ...planWeb()]),
    ...planSsh(input, family),
    ...[sets.literal, sets.learned].map((set): Rule => ({ why: "allowed", match: { set }, verdict: "accept" })),
    ...(input.report ? reportTheRest(family) : []),
    { why: "what is refused is told", match: {}, verdict: "log-refused" },
    ...refuse("everything else"),
  ];
}

const DNS_PROTOCOLS = ["udp", "tcp"] as const;

/** No connection, no reply: such a packet would not be rewritten as those of its connection are. */
function dropInvalid(): Rule[] {
  return [{ why: "a packet that belongs to no connection and begins none", match: { invalid: true }, verdict: "drop" }];
}

/**
 * The engine's resolver listens on another port, and the kernel rewrites port 53 before it asks these rules. What
 * comes here with port 53 was not rewritten, so that whoever holds that port in the box would have it; and whoever
 * has a connection from there makes the kernel take a question for its reply, which is not rewritten.
 */
function guardEngineResolver(family: Family): Rule[] {
  if (family === 6) return [];
  const direct = DNS_PROTOCOLS.map((protocol): Match => ({ destination: ENGINE_RESOLVER, protocol, port: 53 }));
  return [
    ...direct.flatMap((match) => refuseAloud("the engine's resolver without its translation", match)),
    ...refuse("a program that speaks in the name of the engine's resolver", { source: ENGINE_RESOLVER, notTranslated: true }),
  ];
}

/**
 * The upstreams and the engine's resolver are for the proxy alone. This stands ahead of "established": the
 * kernel remembers a question for half a minute after its answer, and whoever then sends from the same port
 * continues it in the kernel's eyes.
 */
function guardResolvers({ proxyUid }: PlanInput, family: Family, upstreams: readonly string[]): Rule[] {
  const engine: Match[] = family === 4 ? [{ destination: ENGINE_RESOLVER }] : [];
  const foreign = upstreams
    .filter((destination) => destination !== ENGINE_RESOLVER)
    .flatMap((destination): Match[] => DNS_PROTOCOLS.map((protocol) => ({ destination, protocol, port: 53 })));
  return [...engine, ...foreign].flatMap((match): Rule[] => [
    { why: "DNS from the box's own resolver", match: { ...match, uid: proxyUid }, verdict: "accept" },
    ...refuseAloud("a resolver that only the proxy may ask", match),
  ]);
}

/**
 * Only the proxy answers in the name of the box's own resolver. Node opens its socket so that others may bind the same
 * UDP port (SO_REUSEADDR), and the kernel would hand the questions to the last of them.
 */
function guardOwnResolver({ proxyUid }: PlanInput, family: Family): Rule[] {
  const why = "an answer of the box's own resolver";
  const match: Match = { outInterface: "lo", source: RESOLVER_ADDRESSES[family], protocol: "udp", sourcePort: 53 };
  return [{ why, match: { ...match, uid: proxyUid }, verdict: "accept" }, ...refuseAloud(why, match)];
}

function planSsh({ ssh }: PlanInput, family: Family): Rule[] {
  const { literal, learned } = nameSets(family);
  const listed = [literal, learned].map(
    (set): Rule => ({ why: "SSH", match: { protocol: "tcp", port: 22, set }, verdict: ssh === "off" ? "tcp-reset" : "accept" }),
  );
  if (ssh !== "any") return listed;
  const anywhere: Match = { protocol: "tcp", port: 22 };
  return [...listed, ...refuseSpecial("SSH to a special-purpose address", family, anywhere), ...acceptPublic("SSH to anybody", family, anywhere)];
}

// A resolver of its own, plain or over TLS, would hide from the report what is asked for.
const RESOLVER_PORTS = [53, 853] as const;

function reportTheRest(family: Family): Rule[] {
  const why = "report mode";
  const resolvers = RESOLVER_PORTS.flatMap((port) => DNS_PROTOCOLS.map((protocol): Match => ({ protocol, port })));
  return [
    ...resolvers.flatMap((match) => refuseAloud(why, match)),
    ...refuseSpecial(why, family, {}),
    { why, match: publicOnly(family), verdict: "log-report" },
    ...acceptPublic(why, family, {}),
  ];
}

function refuseSpecial(why: string, family: Family, match: Match): Rule[] {
  return specialBlocks(family).flatMap((destination) => refuse(why, { ...match, destination }));
}

function acceptPublic(why: string, family: Family, match: Match): Rule[] {
  return [{ why, match: { ...match, ...publicOnly(family) }, verdict: "accept" }];
}

/** Of IPv6 only global unicast is public; what else there is is refused by not being accepted. */
function publicOnly(family: Family): Match {
  return family === 4 ? {} : { destination: "2000::/3" };
}

// IPv4 addresses inside: a gateway on the way would deliver to them.
const EMBEDDING_BLOCKS: Readonly<Record<Family, readonly string[]>> = { 4: [], 6: ["2002::/16"] };

function specialBlocks(family: Family): string[] {
  return [...SPECIAL_RANGES.map(({ range }) => range).filter((range) => familyOf(range) === family), ...EMBEDDING_BLOCKS[family]];
}

function planInput(input: PlanInput, family: Family): Rule[] {
  return [
    ...refuseRoutingHeaders(family),
    ...dropInvalid(),
    { why: "replies and path MTU news", match: { established: true }, verdict: "accept" },
    { why: "the box's own services", match: { inInterface: "lo" }, verdict: "accept" },
    // 134 router advertisement, 135 and 136 neighbour discovery.
    ...allowIcmpv6(family, [134, 135, 136]),
    ...input.published.flatMap((published) => allowPublished(input, family, published)),
    ...refuse("nobody connects to a box"),
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
