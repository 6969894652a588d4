import { ConfigError, type Complaint } from "../../policy/errors.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";

const BUILD_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
const RUN_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

export type SiteProxy = {
  /** Arguments of the image build; engines keep these names out of the image's history. */
  buildArgs: Record<string, string>;
  /** Whether the build has to use the host's network to reach the proxy. */
  onHostLoopback: boolean;
  notices: string[];
};

type SiteProxyQuery = {
  hostEnv: NodeJS.ProcessEnv;
  /** Who decides about the box's connections; undefined without a firewall. */
  enforcement: PolicyDocument["enforcement"] | undefined;
  /** The agent's planned environment. */
  boxEnv: Readonly<Record<string, string>>;
};

/**
 * Plans what a site's proxy serves. The host's variables serve the image build and never enter a box.
 * A proxy that `.env` or `-e` names for the box itself stops the start where addresses decide: who
 * may talk to an open proxy may reach everything (`ConfigError`); where names do, the box's own takes its place. A proxy on the box's own loopback is
 * no way out and passes.
 */
export function planSiteProxy({ hostEnv, enforcement, boxEnv }: SiteProxyQuery): SiteProxy {
  const forBox = enforcement === "address" ? RUN_VARIABLES.flatMap((name) => checkBoxProxy(name, boxEnv)) : [];
  const build = BUILD_VARIABLES.flatMap((name) => {
    const value = pick(name, hostEnv);
    return value === undefined ? [] : [{ name, value }];
  });
  const complaints = [...forBox, ...build.filter(({ name }) => name !== "NO_PROXY").flatMap(({ name, value }) => checkUrl(name, value))];
  if (complaints.length > 0) throw new ConfigError(complaints);
  const proxies = build.filter(({ name }) => name !== "NO_PROXY").map(({ value }) => describeProxy(value));
  const notice = `the proxy ${[...new Set(proxies)].join(" and ")} serves the image build only${enforcement === undefined ? "" : OUT[enforcement]}`;
  return {
    buildArgs: proxies.length === 0 ? {} : Object.fromEntries(build.flatMap(({ name, value }) => [[name, value], [name.toLowerCase(), value]])),
    onHostLoopback: build.some(({ name, value }) => name !== "NO_PROXY" && isLoopbackProxy(value)),
    notices: proxies.length === 0 ? [] : [notice],
  };
}

/** How a box with a firewall goes out that was told of no proxy. */
const OUT = { address: "; the box goes out directly", name: "; the box goes out directly, or by network_proxy.upstream_proxy" } as const;

/** The environment of a build whose proxy a configuration names. */
export function withBuildProxy(hostEnv: NodeJS.ProcessEnv, proxy: string | undefined): NodeJS.ProcessEnv {
  if (proxy === undefined) return hostEnv;
  return { ...hostEnv, http_proxy: proxy, https_proxy: proxy };
}

function checkBoxProxy(name: string, boxEnv: Readonly<Record<string, string>>): Complaint[] {
  return [name, name.toLowerCase()].flatMap((variant) => {
    const value = boxEnv[variant];
    if (value === undefined || value === "" || isLoopbackProxy(value)) return [];
    return [
      {
        what: `${variant} names the proxy ${describeProxy(value)} for the box, and a box that may talk to an open proxy has no firewall`,
        expected: "no proxy while the firewall is on",
        fix: `add -e ${variant}= to unset it, or turn the firewall off`,
      },
    ];
  });
}

function checkUrl(name: string, value: string): Complaint[] {
  const url = parseProxy(value);
  if (url !== null && ["http:", "https:"].includes(url.protocol)) return [];
  return [{ what: `${name} in your environment is no proxy that an image build can use`, expected: "http://HOST:PORT", fix: `correct ${name}, or unset it` }];
}

/** The lower-case name wins, as in curl, which does not even read the upper-case HTTP_PROXY. */
function pick(name: string, env: NodeJS.ProcessEnv): string | undefined {
  return env[name.toLowerCase()] || env[name] || undefined;
}

/** Shows host and port; user name and password of a proxy are secrets. */
function describeProxy(value: string): string {
  const url = parseProxy(value);
  return url === null ? "(unreadable)" : url.host;
}

/** Tells whether a proxy is on the loopback of whoever is told of it. */
export function isLoopbackProxy(value: string): boolean {
  const url = parseProxy(value);
  return url !== null && LOOPBACK.test(url.hostname);
}

function parseProxy(value: string): URL | null {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`);
  return url === null || url.hostname === "" ? null : url;
}
