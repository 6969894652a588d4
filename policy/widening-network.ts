import { parseAllowFile } from "./config-allow-file.ts";
import type { NamedText } from "./config-difference.ts";
import { decideMode } from "./config-mode.ts";
import type { Config, NetworkConfig } from "./config-schema.ts";
import { renderHostTable } from "./config-words.ts";
import { parseEntry, renderEntry, type Entry } from "./entry.ts";
import { rangeCovers } from "./address.ts";
import { ConfigError } from "./errors.ts";
import { coversPattern } from "./pattern.ts";
import { pickAllowFile, renderValue } from "./widening-words.ts";

/** A configuration and the files that it names. */
type Owned = { config: Config; named: readonly NamedText[] };
type Rule = NonNullable<NetworkConfig["rules"]>[number];

/** An element of the allowlist: where it is written, how it is shown, and what it opens; `private` hosts are compared by their text. */
type Listed = { label: string; text: string; entry: Entry | undefined };

/** What any other value of is asked about; `required` does not count in a project. */
const JUDGED = ["enforcement", "ech", "topology", "ssh", "dns", "critical"] as const;
const MODE_RANK = { none: 0, allowlist: 1, full: 2 } as const;

/** Finds what the new [network] opens beyond the old one. The user's own blocks hold beside both. */
export function findNetworkWidenings(before: Owned, after: Owned, user: Config): string[] {
  const old = before.config.network ?? {};
  const current = after.config.network ?? {};
  const mode = compareMode(before.config, after.config);
  // Where nothing is reachable, what is left out opens nothing; what is written is asked about, for the day when the mode goes.
  const closed = decideMode(after.config).mode === "none";
  const blocks = new Set([...(current.block_hosts ?? []), ...(user.network?.block_hosts ?? [])].map((word) => word.toLowerCase()));
  return [
    ...mode,
    ...JUDGED.filter((key) => !closed || current[key] !== undefined).filter((key) => JSON.stringify(old[key]) !== JSON.stringify(current[key])).map((key) => `${key}: ${renderValue(old[key])} → ${renderValue(current[key])}`),
    ...(old.policy?.mode === current.policy?.mode ? [] : [`policy.mode: ${renderValue(old.policy?.mode)} → ${renderValue(current.policy?.mode)}`]),
    ...(current.report === true && old.report !== true ? ["report: lets everything through"] : []),
    ...compareHosts(before, after),
    ...added(old.presets, current.presets).filter((id) => id !== "lockdown").map((id) => `presets: + ${id}`),
    ...added(old.allow_private, current.allow_private).map((range) => `allow_private: + ${range}`),
    ...(closed ? [] : (old.block_hosts ?? [])).filter((word) => !blocks.has(word.toLowerCase())).map((word) => `block_hosts: - ${word}`),
    ...compareRules(old.rules ?? [], current.rules ?? []),
  ];
}

/** The mode as a whole, whichever keys decide it; one that opens less is no matter. */
function compareMode(before: Config, after: Config): string[] {
  const old = decideMode(before);
  const current = decideMode(after);
  // Without any file the network is open as well, but nobody said so; a file that does has to be agreed to.
  if (current.mode === "full" && old.mode === "full" && before.network?.mode !== after.network?.mode) return [`mode: ${renderValue(before.network?.mode)} → ${renderValue(after.network?.mode)}`];
  if (MODE_RANK[current.mode] < MODE_RANK[old.mode]) return [];
  if (current.mode === old.mode) {
    // Without any configuration there is no firewall either; a project that writes that down is still asked about.
    return current.mode === "full" && before.network === undefined && after.network !== undefined ? [`mode: (not set) → full (${current.why})`] : [];
  }
  return [`mode: ${old.mode} → ${current.mode} (${current.why})`];
}

function compareHosts(before: Owned, after: Owned): string[] {
  const known = listHosts(before);
  const texts = new Set(known.map(({ text }) => text));
  return listHosts(after)
    .filter((listed) => !texts.has(listed.text) && !known.some((one) => one.entry !== undefined && listed.entry !== undefined && opens(one.entry, listed.entry)))
    .map(({ label, text }) => `${label}: + ${text}`);
}

function opens(outer: Entry, inner: Entry): boolean {
  const covers =
    outer.target.kind === "range"
      ? inner.target.kind === "range" && rangeCovers(outer.target.range, inner.target.range)
      : inner.target.kind === "pattern" && coversPattern(outer.target.pattern, inner.target.pattern);
  return covers && outer.protocol === inner.protocol && inner.ports.every((port) => outer.ports.includes(port));
}

function listHosts({ config, named }: Owned): Listed[] {
  const { network } = config;
  const own = (network?.allow_hosts ?? []).map((host): Listed => {
    if (typeof host !== "string" && host.private === true) return { label: "allow_hosts", text: `${host.host}:${(host.ports ?? []).join(",")} (private)`, entry: undefined };
    const word = typeof host === "string" ? host : renderWord(host);
    return describeWord("allow_hosts", word);
  });
  const file = network?.allow_file;
  if (file === undefined) return own;
  const text = pickAllowFile(config, named);
  // What was not read cannot be agreed to.
  if (text === undefined) return [...own, { label: "allow_file", text: file, entry: undefined }];
  return [...own, ...parseAllowFile({ file: text.name, text: text.text }).map((line) => describeWord(`allow_file ${text.name}`, line.text))];
}

function describeWord(label: string, word: string): Listed {
  const entry = parseEntry(word, "list");
  return { label, text: entry.ok ? renderEntry(entry.value) : word, entry: entry.ok ? entry.value : undefined };
}

function renderWord(host: Parameters<typeof renderHostTable>[0]): string {
  const word = renderHostTable(host);
  if (!word.ok) throw new ConfigError(word.complaint);
  return word.value;
}

/** First match wins: a deny rule more or an allow rule less only removes, as long as the others keep their order. */
function compareRules(before: readonly Rule[], after: readonly Rule[]): string[] {
  const same = (a: Rule | undefined, b: Rule): boolean => a !== undefined && renderRule(a) === renderRule(b);
  let at = 0;
  let ordered = true;
  for (const rule of after) {
    let next = at;
    while (before[next]?.action === "allow" && !same(before[next], rule)) next += 1;
    if (same(before[next], rule)) at = next + 1;
    else if (rule.action === "allow") ordered = false;
  }
  if (ordered && before.slice(at).every(({ action }) => action === "allow")) return [];
  const found = [
    ...added(before.map(renderRule), after.map(renderRule)).filter((text) => text.startsWith("allow")).map((text) => `rules: + ${text}`),
    ...added(after.map(renderRule), before.map(renderRule)).filter((text) => text.startsWith("deny")).map((text) => `rules: - ${text}`),
  ];
  return found.length === 0 ? ["rules: another order"] : found;
}

function renderRule({ domain, action, ports }: Rule): string {
  return `${action} ${domain.trim().toLowerCase()}${ports === undefined ? "" : `:${[...new Set(ports)].toSorted((a, b) => a - b).join(",")}`}`;
}

function added(before: readonly string[] = [], after: readonly string[] = []): string[] {
  const known = new Set(before);
  return after.filter((word) => !known.has(word));
}
