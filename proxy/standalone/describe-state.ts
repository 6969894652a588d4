import type { ConfigAnswer, PatternsAnswer } from "../../policy/admin-answers.ts";
import { renderOrigin } from "../../policy/effective-list.ts";
import type { ListenAddress, ProxySettings } from "../../policy/proxy-config.ts";
import { renderHostPort } from "../../policy/proxy-words.ts";
import type { LiveState } from "./live-state.ts";
import { findRestartKeys } from "./state-difference.ts";

/** Where a listener is, as a URL. */
export function renderListener(scheme: "http" | "socks5h", { address, port }: ListenAddress): string {
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/** Where the admin API is. */
export function renderAdminUrl(admin: ProxySettings["admin"]): string {
  return "path" in admin ? `unix:${admin.path}` : renderListener("http", admin);
}

/** The configuration in force, without any password: listeners and interception as the process was started, the rest as it is now. */
export function describeConfig({ loaded, mode, policy }: LiveState, { started, logDir, approve }: { started: ProxySettings; logDir: string; approve: boolean }): ConfigAnswer {
  const { settings, parsed } = loaded;
  const { policy: written = {}, mitm = {} } = parsed.config;
  const { upstream } = settings;
  return {
    version: 1,
    file: loaded.path,
    log: logDir,
    enabled: settings.enabled,
    approve,
    mode: policy.policy.methods,
    mode_overridden: mode !== undefined,
    proxy_url: renderListener("http", started.http),
    socks_url: started.socks === undefined ? null : renderListener("socks5h", started.socks),
    admin_url: renderAdminUrl(started.admin),
    upstream_proxy: upstream === undefined ? null : `${upstream.tls ? "https" : "http"}://${renderHostPort(upstream)}`,
    policy: {
      allowed_domains: written.allowed_domains ?? [],
      denied_domains: written.denied_domains ?? [],
      allow_unix_sockets: written.allow_unix_sockets ?? [],
      allow_local_binding: written.allow_local_binding ?? false,
      allow_private: written.allow_private ?? [],
    },
    mitm: { enabled: started.intercept, inspect: settings.inspect, max_body_bytes: settings.maxBodyBytes, ca_cert_path: started.caCertPath, passthrough: mitm.passthrough ?? [] },
    restart_needed: findRestartKeys(started, settings),
  };
}

/** What is let through and what is denied, in canonical form, with where each was written. */
export function describePatterns({ policy, session }: LiveState): PatternsAnswer {
  return {
    version: 1,
    allowed: policy.allowed.map(({ text, origins }) => ({ text, source: origins.map(renderOrigin).join(", "), until: renderEnd(session.find((word) => origins.some((origin) => origin.text === word.text && origin.place === undefined))?.until) })),
    denied: policy.denied.map(({ text, origin }) => ({ text, source: renderOrigin(origin), until: null })),
  };
}

function renderEnd(until: number | undefined): string | null {
  return until === undefined ? null : new Date(until).toISOString();
}
