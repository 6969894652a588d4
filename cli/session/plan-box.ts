import { access } from "node:fs/promises";
import type { MountedPath } from "../../policy/box-spec.ts";
import type { BoxNetwork } from "../engine/container-plan.ts";
import { detectEngine } from "../engine/detect.ts";
import type { Engine } from "../engine/engine.ts";
import { inspectNetwork, type NetworkFacts } from "../engine/network.ts";
import type { Host } from "../host.ts";
import { reportStep } from "../ui/report.ts";
import type { Screen } from "../ui/screen.ts";
import { identifySources } from "../workspace/mount-sources.ts";
import { chooseUpstreams, readHostResolvers } from "./host-resolvers.ts";
import { type BoxRequest, prepareBox, type PreparedBox } from "./prepare.ts";
import { findSiteProxy } from "./site-proxy-addresses.ts";
import { sweepSessions } from "./sweep.ts";

/** What a start needs of the edge of the program. */
export type BoxEdge = { host: Host; screen: Screen };

/** A box that is decided but not made: everything that `create` is told but the session's own files. */
export type PlannedBox = PreparedBox & {
  engine: Engine;
  boxNetwork: BoxNetwork;
  gateways: readonly string[];
  /** The box's own networks, as far as the engine tells. */
  subnets: readonly string[];
  /** Resolvers that the box's own one asks; `ask-engine` where only a box can tell which they are. */
  upstreams: readonly string[] | "ask-engine";
  /** Addresses of the site's proxy that the box's own one leaves through. */
  siteProxy: readonly string[];
  sources: readonly MountedPath[];
};

/** A planned box whose upstreams are known. */
export type SettledBox = Omit<PlannedBox, "upstreams"> & { upstreams: readonly string[] };

/** Finds the engine, clears what killed sessions left there, and decides everything about the box. */
export async function planBox(host: Host, request: BoxRequest, screen: Screen): Promise<PlannedBox> {
  const doubts: string[] = [];
  const engine = await reportStep(screen.report, "engine", async () => {
    const found = await detectEngine({ requested: request.options.engine, env: host.env, warn: (text) => doubts.push(text) });
    return [found, `${found.kind} ${found.version}${found.rootless ? ", rootless" : ""}`];
  });
  const [prepared, facts, resolvers, swept] = await Promise.all([
    prepareBox(host, request, engine),
    inspectNetwork(engine, request.options.network ?? engine.defaultNetwork),
    readHostResolvers(),
    request.options.dryRun ? [] : sweepSessions(host.agentboxHome, engine),
  ]);
  prepared.notices.unshift(...doubts);
  if (swept.length > 0) prepared.notices.push(`removed what ${swept.length === 1 ? "a killed session" : `${swept.length} killed sessions`} left`);
  const lonely = prepared.network.mode === "none";
  if (lonely && prepared.ports.length > 0) prepared.notices.push("-p has no effect: a box without network publishes nothing");
  return {
    ...prepared,
    sources: identifySources(prepared.workspace.mounts),
    siteProxy: await findSiteProxy({ document: prepared.document, network: prepared.network, gateways: facts.gateways, source: request.config.source }),
    engine,
    boxNetwork: await chooseNetwork(prepared, facts),
    gateways: lonely ? [] : facts.gateways,
    subnets: lonely ? [] : facts.subnets,
    upstreams: lonely ? [] : chooseUpstreams({ dns: prepared.dns, resolvers, engine, firewall: prepared.network.firewall }),
  };
}

async function chooseNetwork({ network }: PreparedBox, { name, ipv6 }: NetworkFacts): Promise<BoxNetwork> {
  if (network.mode === "none") return { kind: "none" };
  return { kind: "bridge", name, disableIpv6: network.firewall && !ipv6 && (await kernelKnowsIpv6()) };
}

/** A kernel started without IPv6 has no such setting, and the engine would fail to write it. */
async function kernelKnowsIpv6(): Promise<boolean> {
  if (process.platform !== "linux") return true;
  return await access("/proc/sys/net/ipv6").then(
    () => true,
    () => false,
  );
}
