import { getCACertificates } from "node:tls";
import { parseAddress } from "../policy/address.ts";
import { parseHost } from "../policy/host-name.ts";
import type { ProxySecrets } from "../policy/proxy-secrets.ts";
import type { Upstream } from "../policy/proxy-words.ts";
import type { AccessPolicy } from "./access/access-policy.ts";
import { Access } from "./access/access.ts";
import { type BoxLookupParts, lookupInBox } from "./access/box-lookup.ts";
import { Dialler } from "./access/dial.ts";
import { Flows } from "./access/flows.ts";
import type { Lookup } from "./access/lookup.ts";
import type { LivePolicy } from "./live-policy.ts";
import type { DecisionLog } from "./log/decision-log.ts";
import { startWeb, type WebParts } from "./web.ts";

/** What carries the web where names are judged: inherited sockets that listen, and what only this process may know. */
export type WebOptions = {
  /** For programs that were told of a proxy. */
  http: readonly number[];
  socks: readonly number[];
  /** To which connections to 80 and 443 are led. */
  plain: readonly number[];
  tls: readonly number[];
  /** Where the site's proxy of the policy is: the kernel lets this process reach these addresses and no others. */
  siteProxy: readonly string[];
  secrets: ProxySecrets;
};

export type BoxWebParts = Pick<BoxLookupParts, "resolver" | "cache"> & { options: WebOptions; log: DecisionLog };

/** The web of a box. It listens from its first policy on; until then connections wait in the kernel. */
export class BoxWeb {
  private readonly parts: BoxWebParts;
  private live: LivePolicy | undefined;
  private flows: Flows | undefined;
  private access: Access | undefined;

  constructor(parts: BoxWebParts) {
    this.parts = parts;
  }

  /** Judges by this policy from now on; what is open and not let through any more is cut. */
  async replace(live: LivePolicy): Promise<void> {
    this.live = live;
    const policy = describeAccess(live, this.parts.options);
    if (this.access === undefined) return await this.start(policy);
    this.access.replace(policy);
    this.flows?.judgeAnew();
  }

  private async start(policy: AccessPolicy): Promise<void> {
    const { options, log, resolver, cache } = this.parts;
    const access = new Access({ policy, lookup: lookupInBox({ resolver, cache, live: () => this.live }), log });
    const flows = new Flows(access);
    this.access = access;
    this.flows = flows;
    const dialler = new Dialler({ lookup: findSiteProxy(options), ca: policy.upstream?.tls === true ? readTrusted() : undefined });
    const { http, socks, plain, tls } = options;
    await startWeb({ access, flows, dialler, listeners: { http: http.map(inherit), socks: socks.map(inherit), plain: plain.map(inherit), tls: tls.map(inherit) }, makeIntercept: await loadInterceptor(options) });
  }
}

/** Loaded only where TLS is opened: it takes more memory than the rest. */
async function loadInterceptor({ secrets: { authority } }: WebOptions): Promise<WebParts["makeIntercept"]> {
  if (authority === null) return undefined;
  const { makeInterceptor } = await import("./interception/interceptor.ts");
  return makeInterceptor({ authority });
}

function inherit(fd: number): { fd: number } {
  return { fd };
}

/** What the listeners judge by. Who this box is to the site's proxy is no part of a policy, which the agent may read. */
function describeAccess({ epoch, box }: LivePolicy, { secrets }: WebOptions): AccessPolicy {
  const { policy, report, passesThrough, nameWall } = box;
  const { intercept, inspect, maxBodyBytes, ech } = nameWall;
  return { epoch, enabled: true, policy, report, intercept, passesThrough, refuseEch: ech === "refuse", inspect, maxBodyBytes, upstream: describeUpstream(nameWall.upstream, secrets.upstream) };
}

function describeUpstream(upstream: LivePolicy["box"]["nameWall"]["upstream"], known: WebOptions["secrets"]["upstream"]): Upstream | undefined {
  if (upstream === null) return undefined;
  const host = parseHost(upstream.host);
  if (!host.ok) throw new Error("the host of the site's proxy was judged before");
  return { host: host.value, port: upstream.port, tls: upstream.tls, user: known?.user ?? "", password: known?.password ?? "" };
}

/** The command line found the site's proxy on the host, and the kernel lets this process reach these addresses only. */
function findSiteProxy({ siteProxy }: WebOptions): Lookup {
  const addresses = siteProxy.flatMap((text) => {
    const address = parseAddress(text);
    return address.ok ? [address.value] : [];
  });
  return () => (addresses.length === 0 ? { ok: false, why: "its address was not found when the box was started" } : { ok: true, addresses, freshUntil: Number.POSITIVE_INFINITY });
}

/** Naming authorities takes the place of Node's own list, which the image's does not hold. */
function readTrusted(): string {
  return [...getCACertificates("default"), ...getCACertificates("system")].join("\n");
}
