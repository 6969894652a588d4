import { readSiteCa } from "../environment/site-ca.ts";
import { planSiteProxy, type SiteProxy, withBuildProxy } from "../environment/site-proxy.ts";
import type { Host } from "../host.ts";

/** What a build needs of the site: the certificates of its authority and its proxy. */
export type Site = { certificates: string[]; proxy: SiteProxy; notices: string[] };

/** Reads the site's settings for a build that belongs to no project. */
export function readSite(host: Host, caFile: string | null, buildProxy?: string): Site {
  const { ca, notices } = readSiteCa({ caFile, hostEnv: host.env, cwd: host.cwd, writableRoots: [] });
  const proxy = planSiteProxy({ hostEnv: withBuildProxy(host.env, buildProxy), enforcement: undefined, boxEnv: {} });
  return { certificates: ca?.certificates ?? [], proxy, notices: [...notices, ...proxy.notices] };
}
