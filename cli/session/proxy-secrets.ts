import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Config } from "../../policy/config-schema.ts";
import { PROXY_SECRETS_FILE, type ProxySecrets } from "../../policy/proxy-secrets.ts";
import { parseUpstream } from "../../policy/proxy-words.ts";
import { writeWhole } from "./whole-file.ts";

/** Reads who the box is to the site's proxy; null where that asks for nobody. The policy never holds it. */
export function readUpstreamLogin({ network_proxy: proxy }: Config): ProxySecrets["upstream"] {
  const upstream = proxy?.upstream_proxy === undefined ? undefined : parseUpstream(proxy.upstream_proxy);
  if (upstream?.ok !== true || upstream.value.user === "") return null;
  const { user, password } = upstream.value;
  return { user, password };
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
