import { lookup } from "node:dns/promises";
import { classifyAddress } from "../../policy/address-class.ts";
import { parseAddress } from "../../policy/address.ts";
import { ConfigError, ResolveError } from "../../policy/errors.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";
import type { NetworkDecision } from "./firewall-switch.ts";

/** Each is a rule of its own; a proxy with more addresses is a service that answers at any of them. */
const MAX_ADDRESSES = 8;
/** How containers call the machine that they run on. */
const HOST_NAME = "host.docker.internal";

export type SiteProxyQuery = {
  document: PolicyDocument;
  network: Pick<NetworkDecision, "firewall" | "mode">;
  /** The host's addresses on the box's network. */
  gateways: readonly string[];
  /** Name of the configuration. */
  source: string | undefined;
  /** Asks this machine where a name leads. */
  resolve?: (name: string) => Promise<string[]>;
};

/**
 * Finds the addresses of the site's proxy, which a box's own proxy leaves through: the kernel opens them to that one
 * alone. Empty where there is none, or no firewall. Throws ConfigError for one that no box can have, ResolveError for
 * one that is not found.
 */
export async function findSiteProxy({ document, network, gateways, source, resolve = askHost }: SiteProxyQuery): Promise<string[]> {
  const { upstream } = document.nameWall;
  if (upstream === null || !network.firewall || network.mode === "none") return [];
  const place = source === undefined ? undefined : { file: source };
  if (document.enforcement !== "name") {
    throw new ConfigError({ what: "network_proxy.upstream_proxy needs the name wall: a box that may talk to an open proxy has no firewall", expected: 'enforcement = "name"', fix: "take upstream_proxy out, or let names be judged", place });
  }
  const found = upstream.host === HOST_NAME && gateways.length > 0 ? [...gateways] : await resolve(upstream.host).catch(() => []);
  const addresses = found.flatMap((text) => {
    const address = parseAddress(text);
    return address.ok ? [address.value] : [];
  });
  if (addresses.length === 0) throw new ResolveError({ what: `the site's proxy ${upstream.host} is not found`, expected: "a name that this machine resolves, or an address", fix: "correct network_proxy.upstream_proxy", place });
  const own = addresses.find((address) => isBoxItself(classifyAddress(address)));
  if (own !== undefined) {
    throw new ConfigError({ what: `the site's proxy ${upstream.host} is ${own.text}, which in a box is the box itself`, expected: "an address that a box reaches", fix: `have the proxy listen on the box's network and write ${HOST_NAME} for this machine`, place });
  }
  return [...new Set(addresses.map(({ text }) => text))].slice(0, MAX_ADDRESSES);
}

function isBoxItself(answer: ReturnType<typeof classifyAddress>): boolean {
  return answer.kind !== "public" && /^(?:loopback|this network|unspecified address)/.test(answer.name);
}

async function askHost(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}
