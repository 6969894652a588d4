import type { ProxyConfig } from "../../policy/proxy-schema.ts";
import type { ProxySettings } from "../../policy/proxy-config.ts";
import type { LiveState } from "./live-state.ts";

/** What one state opens and closes compared with another, and the other values that differ, in words. */
export type StateDifference = { added: string[]; removed: string[]; changed: string[] };

/** Finds what differs between two states. */
export function compareStates(before: LiveState, after: LiveState): StateDifference {
  const [old, current] = [listRules(before), listRules(after)];
  return {
    added: [...current].filter((text) => !old.has(text)),
    removed: [...old].filter((text) => !current.has(text)),
    changed: [
      ...(modeOf(before) === modeOf(after) ? [] : [`mode ${modeOf(before)} → ${modeOf(after)}`]),
      ...SHOWN.flatMap(({ key, read }) => compareShown(key, read(before.loaded.parsed.config), read(after.loaded.parsed.config))),
      ...(JSON.stringify(before.loaded.settings.upstream) === JSON.stringify(after.loaded.settings.upstream) ? [] : ["upstream_proxy changed"]),
    ],
  };
}

/** Keys whose new value counts from the next start on. */
export function findRestartKeys(started: ProxySettings, now: ProxySettings): string[] {
  const differs = (read: (settings: ProxySettings) => unknown): boolean => JSON.stringify(read(started)) !== JSON.stringify(read(now));
  return RESTART.filter(({ read }) => differs(read)).map(({ key }) => key);
}

const RESTART: readonly { key: string; read: (settings: ProxySettings) => unknown }[] = [
  { key: "proxy_url", read: ({ http }) => http },
  { key: "socks_url", read: ({ socks }) => socks },
  { key: "admin_url", read: ({ admin }) => admin },
  { key: "mitm.enabled", read: ({ intercept }) => intercept },
  { key: "mitm.ca_cert_path", read: ({ caCertPath }) => caCertPath },
  { key: "mitm.ca_key_path", read: ({ caKeyPath }) => caKeyPath },
];

type Shown = { key: string; read: (config: ProxyConfig) => boolean | number | readonly string[] | undefined };

/** What counts at once, beside hosts and mode. The site's proxy may carry a password, and is never shown. */
const SHOWN: readonly Shown[] = [
  { key: "enabled", read: ({ enabled }) => enabled ?? false },
  { key: "approve", read: ({ approve }) => approve ?? false },
  { key: "allow_local_binding", read: ({ policy }) => policy?.allow_local_binding ?? false },
  { key: "allow_private", read: ({ policy }) => policy?.allow_private ?? [] },
  { key: "mitm.inspect", read: ({ mitm }) => mitm?.inspect ?? false },
  { key: "mitm.max_body_bytes", read: ({ mitm }) => mitm?.max_body_bytes },
  { key: "mitm.passthrough", read: ({ mitm }) => mitm?.passthrough ?? [] },
];

function compareShown(key: string, before: ReturnType<Shown["read"]>, after: ReturnType<Shown["read"]>): string[] {
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [`${key} ${render(before)} → ${render(after)}`];
}

function render(value: ReturnType<Shown["read"]>): string {
  if (value === undefined) return "(default)";
  return Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
}

function listRules({ policy }: LiveState): ReadonlySet<string> {
  return new Set([...policy.allowed.map(({ text }) => `allow ${text}`), ...policy.denied.map(({ text }) => `deny ${text}`)]);
}

function modeOf({ policy }: LiveState): string {
  return policy.policy.methods;
}
