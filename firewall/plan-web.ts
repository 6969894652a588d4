import type { Family } from "../policy/address.ts";
import { LISTENER_ADDRESSES, TRANSPARENT_PORTS } from "../policy/box-spec.ts";
import { refuseAloud } from "./refuse.ts";
import { type Chain, familyOf, nameSets, REDIRECT_CHAIN, type Rule, WEB_CHAIN } from "./rule.ts";

// The name wall's part of the rules: TCP 80 and 443 leave through the proxy, which reads the names in them.

/** What the name wall's rules need beside the others. */
export type NameWallInput = {
  /** Where the site's proxy listens, which everything leaves through; empty where there is none. */
  siteProxy: readonly { address: string; port: number }[];
};

/** The ports of the web, each with that of the listener which reads it. */
const WEB = [
  { port: 80, listener: TRANSPARENT_PORTS.plain },
  { port: 443, listener: TRANSPARENT_PORTS.tls },
] as const;

/**
 * The NAT chain. It decides where a connection is led and never whether it may be: where it is missing, `planWeb`
 * refuses what it would have led away.
 */
export function planRedirect(proxyUid: number, family: Family): Chain {
  const rules: Rule[] = [
    { why: "the proxy's own connections", match: { uid: proxyUid }, verdict: "return" },
    { why: "the box's own services", match: { outInterface: "lo" }, verdict: "return" },
    ...leaveAlone(family),
    ...WEB.map(({ port, listener }): Rule => ({ why: "the web goes to the proxy", match: { protocol: "tcp", port }, verdict: { redirect: listener } })),
  ];
  return { name: REDIRECT_CHAIN, hook: "OUTPUT", rules };
}

/** The chain that every packet to a port of the web passes: the proxy's and those that are left alone go on. */
export function planWebChain(proxyUid: number, family: Family): Chain {
  const rules: Rule[] = [
    { why: "the proxy leaves through the sets", match: { uid: proxyUid }, verdict: "return" },
    ...leaveAlone(family),
    ...refuseAloud("the web, past the proxy", { protocol: "tcp" }),
  ];
  return { name: WEB_CHAIN, rules };
}

/** What the owner wrote as an address, or as a port that tells no name, is judged by address alone. */
function leaveAlone(family: Family): Rule[] {
  const { literal, direct } = nameSets(family);
  return [literal, direct].map((set): Rule => ({ why: "judged by its address", match: { set }, verdict: "return" }));
}

/** Refuses the web to all but the proxy, whether or not it was led away, and QUIC, so that clients fall back to TCP. */
export function planWeb(): Rule[] {
  return [
    ...WEB.map(({ port }): Rule => ({ why: "the web", match: { protocol: "tcp", port }, verdict: { jump: WEB_CHAIN } })),
    ...refuseAloud("QUIC, whose names nobody reads", { protocol: "udp", port: 443 }),
  ];
}

/** Lets through what was led to the proxy: to these rules it still leaves by the interface that it was sent to. */
export function allowListeners(family: Family): Rule[] {
  return WEB.map(({ listener }): Rule => ({ why: "the web, led to the proxy", match: { destination: LISTENER_ADDRESSES[family], protocol: "tcp", port: listener }, verdict: "accept" }));
}

/** Lets the proxy and nobody else talk to the site's proxy, from where everything can be reached. */
export function guardSiteProxy({ siteProxy }: NameWallInput, proxyUid: number, family: Family): Rule[] {
  return siteProxy
    .filter(({ address }) => familyOf(address) === family)
    .flatMap(({ address: destination, port }): Rule[] => [
      { why: "the site's proxy", match: { destination, protocol: "tcp", port, uid: proxyUid }, verdict: "accept" },
      ...refuseAloud("the site's proxy, which only the box's own may ask", { destination, protocol: "tcp", port }),
    ]);
}

/**
 * Refuses a connection that begins within another. The kernel knows a connection by addresses and ports alone: a
 * program that takes the port of one of the proxy's which is over on this side would continue it, past all that
 * judges connections when they begin.
 */
export function refuseWithin(): Rule[] {
  return [{ why: "a connection that begins within another", match: { protocol: "tcp", begins: true, established: true }, verdict: "tcp-reset" }];
}
