import type { DecisionRecord } from "./decision-record.ts";
import { commandOf, renderAllowCommand } from "./allow-command.ts";
import { renderEntry, type EntryTarget } from "./entry.ts";
import { renderHost, type Host } from "./host-name.ts";
import { registrableDomain } from "./public-suffix.ts";
import { findSharedStore } from "./shared-stores.ts";
import { collectHosts, type UsedHost } from "./used-hosts.ts";

/** One entry for `allow_hosts`, and what it stands for. */
export type Suggestion = {
  /** As it is to be written, in canonical form. */
  text: string;
  ports: readonly number[];
  /** The hosts that were really asked for; more than one only below a wildcard. */
  hosts: readonly string[];
  /** How often. */
  count: number;
};

/** So many names below one domain become a wildcard; fewer are listed one by one. */
const FOLD_FROM = 4;
const DEFAULT_PORT = 443;

/** What the lists that come with the box open anyway: such hosts need no entry. */
export type DefaultTest = (host: Host, port: number) => boolean;

/**
 * Works out the smallest list that covers what a session used: hosts that were allowed, or let through by
 * report mode, without those that are open by default. Ports are those of the kernel's records, else 443. Four or more
 * names that no rule allowed, with the same ports below one registered domain, become a wildcard below what they
 * have in common, never below a public suffix or a shared store. Telemetry, dotless names and special-purpose
 * addresses are left out. Most used first. This module loads a large table of suffixes.
 */
export function suggestEntries(records: readonly DecisionRecord[], isDefault: DefaultTest = () => false): readonly Suggestion[] {
  const used = collectHosts(records, ({ action }) => action !== "deny").filter((each) => !isOpenByDefault(each, isDefault));
  return foldNames(used).toSorted(byUse);
}

/** Lists the hosts that a session used and that are open by default, in the order of the alphabet. */
export function listDefaults(records: readonly DecisionRecord[], isDefault: DefaultTest): readonly string[] {
  const used = collectHosts(records, ({ action }) => action !== "deny").filter((each) => isOpenByDefault(each, isDefault));
  return used.map(({ host }) => renderHost(host)).toSorted();
}

/** Works out what would have to be allowed for a session that failed: what no rule allowed, unfolded, without telemetry. Most asked for first. */
export function suggestFixes(records: readonly DecisionRecord[]): readonly Suggestion[] {
  const refused = collectHosts(records, ({ action, reason }) => action === "deny" && reason === "not_allowed");
  return refused.map((host) => describeHost(host)).toSorted(byUse);
}

/** Suggestions as a `[network]` table to paste into the configuration. */
export function renderSuggestedToml(suggestions: readonly Suggestion[]): string {
  const lines = suggestions.map(({ text, count, hosts }) => `  ${JSON.stringify(text)}, # ${hosts.length > 1 ? `${hosts.length} names, ` : ""}${count} ${count === 1 ? "time" : "times"}\n`);
  return `[network]\nallow_hosts = [\n${lines.join("")}]\n`;
}

/** Suggestions as commands to paste into a shell of the host, one for each host that a command can allow. */
export function renderSuggestedCommands(suggestions: readonly Suggestion[]): readonly string[] {
  const commands = suggestions.flatMap(({ hosts, ports }) => hosts.flatMap((host) => ports.map((port) => commandOf(renderAllowCommand({ host, port, reason: "not_allowed" })))));
  return [...new Set(commands)].filter((command) => command !== null);
}

function isOpenByDefault(used: UsedHost, isDefault: DefaultTest): boolean {
  return portsOf(used).every((port) => isDefault(used.host, port));
}

function foldNames(used: readonly UsedHost[]): readonly Suggestion[] {
  const groups = Map.groupBy(used, (each) => groupOf(each));
  return [...groups].flatMap(([group, members]) => {
    const names = members.flatMap(({ host }) => (host.kind === "name" ? [host.name] : []));
    const suffix = group === undefined || names.length < FOLD_FROM ? undefined : commonSuffix(names);
    const [first] = members;
    if (suffix === undefined || first === undefined || findSharedStore(suffix, true) !== undefined) return members.map((each) => describeHost(each));
    const ports = portsOf(first);
    const text = render({ kind: "pattern", pattern: { kind: "below", suffix } }, ports);
    return [{ text, ports, hosts: names.toSorted(), count: members.reduce((sum, { count }) => sum + count, 0) }];
  });
}

/** Names that may become one wildcard: the same registered domain and ports, below it and not the domain itself. What a rule allows already is not widened. */
function groupOf(used: UsedHost): string | undefined {
  if (used.host.kind !== "name" || used.allowed) return undefined;
  const domain = registrableDomain(used.host.name);
  return domain === undefined || domain === used.host.name ? undefined : `${domain} ${portsOf(used).join(",")}`;
}

/** The longest domain that all names lie below. */
function commonSuffix(names: readonly string[]): string {
  const reversed = names.map((name) => name.split(".").toReversed());
  const [first = []] = reversed;
  const shortest = Math.min(...reversed.map((labels) => labels.length)) - 1;
  const differing = first.findIndex((label, index) => index >= shortest || reversed.some((labels) => labels[index] !== label));
  return first.slice(0, differing).toReversed().join(".");
}

function describeHost(used: UsedHost): Suggestion {
  const { host, count } = used;
  const ports = portsOf(used);
  const target: EntryTarget =
    host.kind === "name"
      ? { kind: "pattern", pattern: { kind: "exact", name: host.name } }
      : { kind: "range", range: { family: host.address.family, base: host.address.value, prefix: host.address.family === 4 ? 32 : 128, text: host.address.text } };
  return { text: render(target, ports), ports, hosts: [renderHost(host)], count };
}

function portsOf({ ports }: UsedHost): readonly number[] {
  return ports.size === 0 ? [DEFAULT_PORT] : [...ports].toSorted((a, b) => a - b);
}

function render(target: EntryTarget, ports: readonly number[]): string {
  return renderEntry({ target, ports, protocol: "web" });
}

function byUse(a: Suggestion, b: Suggestion): number {
  return b.count - a.count || (a.text < b.text ? -1 : 1);
}
