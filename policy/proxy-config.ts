import { z } from "zod";
import { keysAt } from "./config-file.ts";
import { describeIssues } from "./config-complaint.ts";
import type { ConfigPath } from "./config-span-index.ts";
import { parseToml } from "./config-toml.ts";
import { collectComplaints, type Complaint, ConfigError, type Place } from "./errors.ts";
import { renderHost } from "./host-name.ts";
import { isLoopback } from "./loopback.ts";
import { makeProxySchema, type ProxyConfig } from "./proxy-schema.ts";
import { type AdminListener, type Listener, parseAdminListener, parseListener, parseUpstream, renderHostPort, type Upstream } from "./proxy-words.ts";
import type { PublicSuffixTest } from "./wildcard-check.ts";

/** `[network_proxy]` of a file as it was read: its name in messages, its text, its values, and where each of them stands. */
export type ParsedProxyConfig = { file: string; text: string; config: ProxyConfig; placeOf: (path: ConfigPath) => Place };

/** An address to listen on; never a name. */
export type ListenAddress = { address: string; port: number };

/** What the stand-alone proxy is told by its file, beside which hosts it lets through. */
export type ProxySettings = {
  enabled: boolean;
  approve: boolean;
  http: ListenAddress;
  /** Undefined where SOCKS5 is switched off. */
  socks: ListenAddress | undefined;
  admin: ListenAddress | { path: string };
  upstream: Upstream | undefined;
  intercept: boolean;
  inspect: boolean;
  maxBodyBytes: number;
  /** As written, relative to the file. */
  caCertPath: string;
  caKeyPath: string;
  /** Sentences about what is legal and was not done, or opens much. */
  warnings: readonly string[];
};

const DEFAULTS = { proxy_url: "http://127.0.0.1:3128", socks_url: "http://127.0.0.1:8081", admin_url: "http://127.0.0.1:8080" } as const;
type UrlKey = keyof typeof DEFAULTS;
const DANGEROUS = { proxy_url: "dangerously_allow_non_loopback_proxy", socks_url: "dangerously_allow_non_loopback_proxy", admin_url: "dangerously_allow_non_loopback_admin" } as const;

/**
 * Parses what the stand-alone proxy reads of a file: `[network_proxy]` alone, strictly. Everything else in
 * it may be another program's. Throws one ConfigError with every mistake, as `parseConfig` does.
 */
export function parseProxyConfig({ file, text, isPublicSuffix }: { file: string; text: string; isPublicSuffix: PublicSuffixTest }): ParsedProxyConfig {
  const toml = parseToml(file, text);
  const schema = z.looseObject({ network_proxy: makeProxySchema(isPublicSuffix).optional() });
  const result = schema.safeParse(toml.value, { reportInput: false });
  if (!result.success) throw new ConfigError(describeIssues(result.error.issues, { file, toml, keysAt }));
  return { file, text, config: result.data.network_proxy ?? {}, placeOf: (path) => ({ file, ...toml.locate(path) }) };
}

/** Makes the settings of a file, with defaults; an address of the network is taken only where the file says so. Throws ConfigError where two listeners would take one place. */
export function readProxySettings({ config, placeOf }: Pick<ParsedProxyConfig, "config" | "placeOf">): ProxySettings {
  const warnings: string[] = [];
  const complaints: Complaint[] = [];
  const readUrl = <T>(key: UrlKey, clamp: (text: string) => T): T | undefined => collectComplaints(complaints, () => clamp(config[key] ?? DEFAULTS[key]));
  const clampText = (key: UrlKey) => (text: string) => clampListener(key, unwrap(parseListener(text)), { config, warnings });
  const http = readUrl("proxy_url", clampText("proxy_url"));
  const socks = config.enable_socks5 === false ? undefined : readUrl("socks_url", clampText("socks_url"));
  const admin = readUrl("admin_url", (text) => clampAdmin(unwrap(parseAdminListener(text)), { config, warnings }));
  if (http === undefined || admin === undefined) throw new ConfigError(complaints);
  complaints.push(...refuseClashes({ proxy_url: http, socks_url: socks, admin_url: "path" in admin ? undefined : admin }, placeOf));
  if (complaints.length > 0) throw new ConfigError(complaints);
  const { mitm = {} } = config;
  return {
    enabled: config.enabled ?? false,
    approve: config.approve ?? false,
    http,
    socks,
    admin,
    upstream: config.upstream_proxy === undefined ? undefined : unwrap(parseUpstream(config.upstream_proxy)),
    intercept: mitm.enabled ?? false,
    inspect: mitm.inspect ?? false,
    maxBodyBytes: mitm.max_body_bytes ?? 4096,
    caCertPath: mitm.ca_cert_path ?? "network_proxy/mitm/ca.pem",
    caKeyPath: mitm.ca_key_path ?? "network_proxy/mitm/ca.key",
    warnings,
  };
}

type Clamping = { config: ProxyConfig; warnings: string[] };

/** Whoever reaches a listener uses it: on another address than loopback that is everybody near. */
function clampListener(key: UrlKey, { host, port }: Listener, { config, warnings }: Clamping): ListenAddress {
  const address = host.kind === "name" ? "127.0.0.1" : host.address.text;
  const scheme = key === "socks_url" ? "socks5" : "http";
  if (isLoopback(host)) return { address, port };
  const url = `${scheme}://${renderHostPort({ host, port })}`;
  if (config[DANGEROUS[key]] === true) {
    warnings.push(`${key} is ${url}: whoever reaches that address over the network may use it`);
    return { address, port };
  }
  warnings.push(`${key} names ${renderHost(host)}, which is not loopback: it listens on 127.0.0.1:${port}; ${DANGEROUS[key]} = true would take it as written`);
  return { address: "127.0.0.1", port };
}

function clampAdmin(listener: AdminListener, clamping: Clamping): ListenAddress | { path: string } {
  return "path" in listener ? listener : clampListener("admin_url", listener, clamping);
}

function refuseClashes(listeners: Partial<Record<UrlKey, ListenAddress | undefined>>, placeOf: ParsedProxyConfig["placeOf"]): Complaint[] {
  const taken = new Map<string, UrlKey>();
  const complaints: Complaint[] = [];
  for (const key of ["proxy_url", "socks_url", "admin_url"] as const) {
    const listener = listeners[key];
    if (listener === undefined) continue;
    const text = `${listener.address} ${listener.port}`;
    const other = taken.get(text);
    if (other === undefined) taken.set(text, key);
    else complaints.push({ what: `${other} and ${key} both name port ${listener.port}`, expected: "a port for each", fix: `write another port for ${key}`, place: placeOf(["network_proxy", key]) });
  }
  return complaints;
}

/** The schema refused it already. */
function unwrap<T>(result: { ok: true; value: T } | { ok: false; complaint: Complaint }): T {
  if (!result.ok) throw new ConfigError(result.complaint);
  return result.value;
}
