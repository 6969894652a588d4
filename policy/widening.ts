import { renderDifference, type NamedText } from "./config-difference.ts";
import { parseConfig } from "./config-file.ts";
import type { Config } from "./config-schema.ts";
import { ConfigError } from "./errors.ts";
import { escapeUnseen } from "./parsed.ts";
import type { SandboxConfig } from "./sandbox-schema.ts";
import { findNetworkWidenings } from "./widening-network.ts";
import { pickAllowFile, renderValue } from "./widening-words.ts";

/** What changed since the owner last agreed: the widenings in words (none: no trust is needed), and the differing lines. */
export type TrustComparison = { widenings: string[]; difference: string };

/**
 * Compares the files of a project with those that its owner trusted: the configuration first, then the
 * files that it names. What only removes widens nothing. Before any trust the user's own configuration is what
 * counted, so it is what the project's is measured by: a project file without [network] would otherwise
 * quietly take the place of a strict one; `user` is empty where there is none. `parsed` is the new configuration where it was
 * judged already. Throws ConfigError where the new configuration is malformed.
 */
export function compareTrust(before: readonly NamedText[] | undefined, after: readonly NamedText[], user: Config, parsed?: Config): TrustComparison {
  const [oldMain, ...oldNamed] = before ?? [];
  const [newMain, ...newNamed] = after;
  const current = parsed ?? (newMain === undefined ? {} : parseConfig({ file: newMain.name, text: newMain.text }).config);
  const agreed = oldMain === undefined ? user : parseAgreed(oldMain);
  const widenings = [
    ...findNetworkWidenings({ config: agreed, named: oldNamed }, { config: current, named: newNamed }, user),
    ...findTableWidenings(agreed, current),
    ...findFileChanges(oldNamed, newNamed, current),
  ];
  return { widenings: widenings.map(escapeUnseen), difference: renderDifference(before ?? [], after) };
}

/** An older version's file may not be understood any more; everything in the new one is then asked about. */
function parseAgreed({ name, text }: NamedText): Config {
  try {
    return parseConfig({ file: name, text }).config;
  } catch (error) {
    if (error instanceof ConfigError) return { network: { mode: "none" } };
    throw error;
  }
}

/** Lists of these tables widen by what is added; every other value of them by any change. */
const LISTS: ReadonlySet<string> = new Set(["add_dirs", "ports", "writable", "agents", "packages", "allowed_domains", "allow_unix_sockets", "allow_private", "passthrough"]);
/** Lists that widen by what is taken out. */
const DENYING: ReadonlySet<string> = new Set(["denied_domains"]);
/** Values that may be secrets are never repeated. */
const SECRETS: ReadonlySet<string> = new Set(["env", "proxy", "upstream_proxy"]);

function findTableWidenings(before: Config, after: Config): string[] {
  return [
    ...(["box", "workspace", "build"] as const).flatMap((table) => compareTable(table, before[table], after[table])),
    ...compareTable("network_proxy", withoutTables(before.network_proxy), withoutTables(after.network_proxy)),
    ...(["policy", "mitm"] as const).flatMap((table) => compareTable(`network_proxy.${table}`, before.network_proxy?.[table], after.network_proxy?.[table])),
    ...compareSandbox(before.sandbox, after.sandbox),
  ];
}

function compareTable(table: string, before: object = {}, after: object = {}): string[] {
  const old = new Map<string, unknown>(Object.entries(before));
  const current = new Map<string, unknown>(Object.entries(after));
  return [...new Set([...old.keys(), ...current.keys()])].flatMap((key) => compareValue(`[${table}] ${key}`, key, old.get(key), current.get(key)));
}

/** Rules and grants are told one by one. A rule less may be a deny less, and their order decides: any difference counts. */
function compareSandbox({ rules = [], grants = [], ...rest }: SandboxConfig = {}, { rules: newRules = [], grants: newGrants = [], ...newRest }: SandboxConfig = {}): string[] {
  return [...compareEntries("[sandbox] rules", rules, newRules), ...compareEntries("[sandbox] grants", grants, newGrants), ...compareTable("sandbox", rest, newRest)];
}

function compareEntries(label: string, before: readonly object[], after: readonly object[]): string[] {
  const [old, current] = [before, after].map((entries) => entries.map((entry) => JSON.stringify(entry)));
  if (old === undefined || current === undefined || old.join("\n") === current.join("\n")) return [];
  const found = [...addedWords(old, current).map((entry) => `${label}: + ${entry}`), ...addedWords(current, old).map((entry) => `${label}: - ${entry}`)];
  return found.length === 0 ? [`${label}: another order`] : found;
}

function withoutTables(proxy: Config["network_proxy"]): object {
  return Object.fromEntries(Object.entries(proxy ?? {}).filter(([key]) => key !== "policy" && key !== "mitm"));
}

function compareValue(label: string, key: string, before: unknown, after: unknown): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (LISTS.has(key)) return addedWords(before, after).map((word) => `${label}: + ${word}`);
  if (DENYING.has(key)) return addedWords(after, before).map((word) => `${label}: - ${word}`);
  if (key === "env") return compareVariables(label, toRecord(before), toRecord(after));
  if (SECRETS.has(key)) return [`${label}: ${before === undefined ? "new" : "changed"}`];
  return [`${label}: ${renderValue(before)} → ${renderValue(after)}`];
}

function addedWords(before: unknown, after: unknown): string[] {
  const old = new Set(Array.isArray(before) ? before.map(String) : []);
  return (Array.isArray(after) ? after.map(String) : []).filter((word) => !old.has(word));
}

function compareVariables(label: string, before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>): string[] {
  return [...after].filter(([name, value]) => before.get(name) !== value).map(([name]) => `${label}: ${before.has(name) ? `${name} changed` : `+ ${name}`}`);
}

function toRecord(value: unknown): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>(typeof value === "object" && value !== null ? Object.entries(value) : []);
}

/** Files beside the list of hosts, such as a CA's: any other content counts. */
function findFileChanges(before: readonly NamedText[], after: readonly NamedText[], current: Config): string[] {
  const list = pickAllowFile(current, after);
  return after.filter((file) => file !== list && before.find(({ name }) => name === file.name)?.text !== file.text).map(({ name }) => `${name}: changed`);
}
