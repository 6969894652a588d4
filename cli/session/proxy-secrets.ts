import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Config } from "../../policy/config-schema.ts";
import { PROXY_SECRETS_FILE, type ProxySecrets } from "../../policy/proxy-secrets.ts";
import { parseUpstream, renderHostPort, type Upstream } from "../../policy/proxy-words.ts";
import { writeWhole } from "./whole-file.ts";

type LoginQuery = {
  /** What counts, and the user's own file, which no box sees. */
  config: Config;
  userConfig: Config;
};

/**
 * Reads who the box is to the site's proxy; null where that asks for nobody. The policy never holds it. A project's file
 * may name the proxy alone: its agent can read that file, and the login is then the one that the user's own has for it.
 */
export function readUpstreamLogin({ config, userConfig }: LoginQuery): ProxySecrets["upstream"] {
  const upstream = readUpstream(config);
  const own = readUpstream(userConfig);
  if (upstream === undefined) return null;
  const known = upstream.user === "" && own !== undefined && renderPlace(own) === renderPlace(upstream) ? own : upstream;
  return known.user === "" ? null : { user: known.user, password: known.password };
}

function readUpstream({ network_proxy: proxy }: Config): Upstream | undefined {
  const upstream = proxy?.upstream_proxy === undefined ? undefined : parseUpstream(proxy.upstream_proxy);
  return upstream?.ok === true ? upstream.value : undefined;
}

function renderPlace(upstream: Upstream): string {
  return `${upstream.tls ? "https" : "http"}://${renderHostPort(upstream)}`;
}

/** Says so where a password stands in a file that the agent reads. */
export function warnReadableLogin({ config, ofProject }: Pick<LoginQuery, "config"> & { ofProject: boolean }): string[] {
  if (!ofProject || (readUpstream(config)?.password ?? "") === "") return [];
  return ["the agent can read the password of upstream_proxy in .agentbox/config.toml; write it into ~/.agentbox/config.toml, and the proxy without it here"];
}

/**
 * Writes what only the proxy may know into a session's log directory. The proxy's uid in the box is nobody's on the
 * host, so the file's mode keeps nobody out: on the host the directories above do, in the box the keeper's.
 */
export async function writeProxySecrets({ log }: { log: string }, secrets: ProxySecrets): Promise<void> {
  await writeWhole(path.join(log, PROXY_SECRETS_FILE), JSON.stringify(secrets), { exact: 0o644 });
}

/** Removes them, drafts of a session that was killed while it wrote included. */
export async function removeProxySecrets(log: string): Promise<void> {
  const names = (await readdir(log).catch(() => [])).filter((name) => name.startsWith(PROXY_SECRETS_FILE));
  for (const name of names) await rm(path.join(log, name), { recursive: true, force: true });
}
