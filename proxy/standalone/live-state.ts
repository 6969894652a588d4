import type { DocumentWord } from "../../policy/policy-document.ts";
import type { ListenAddress, ProxySettings } from "../../policy/proxy-config.ts";
import { buildProxyPolicy, type ProxyPolicy } from "../../policy/proxy-config-policy.ts";
import type { Methods } from "../../policy/use.ts";
import type { AccessPolicy } from "../access/access-policy.ts";
import type { LoadedConfig } from "./loaded-config.ts";

/** What serves: the file as it was read, what was said since, and the policy made of both. */
export type LiveState = { loaded: LoadedConfig; mode: Methods | undefined; session: readonly DocumentWord[]; policy: ProxyPolicy };

export type StateInput = Omit<LiveState, "policy"> & {
  /** What the process was started with: listeners and interception stay as they are until it is started again. */
  started: ProxySettings;
};

/** Builds the policy of a file and of what was said since. Throws ConfigError. */
export function buildState({ loaded, mode, session, started }: StateInput): LiveState {
  const { parsed, user, isPublicSuffix } = loaded;
  const policy = buildProxyPolicy({ parsed, user, session, mode, own: listListeners(started), isPublicSuffix, now: Date.now() });
  return { loaded, mode, session, policy };
}

let epochs = 0;

/** Makes what the listeners judge by. */
export function makeAccessPolicy({ loaded: { settings }, policy }: LiveState, started: ProxySettings): AccessPolicy {
  epochs += 1;
  return {
    epoch: epochs,
    enabled: settings.enabled,
    policy: policy.policy,
    report: false,
    intercept: started.intercept,
    passesThrough: policy.passesThrough,
    refuseEch: false,
    inspect: settings.inspect,
    maxBodyBytes: settings.maxBodyBytes,
    upstream: settings.upstream,
  };
}

function listListeners({ http, socks, admin }: ProxySettings): ListenAddress[] {
  return [http, socks, "path" in admin ? undefined : admin].filter((listener) => listener !== undefined);
}
