import { parseRange, type Range } from "./address.ts";
import { blocksHost } from "./block.ts";
import { parsePassthrough } from "./box-policy.ts";
import { addExcerpts } from "./config-file.ts";
import { collectEntries, type EffectiveBlock, type EffectiveEntry } from "./effective-list.ts";
import { type Complaint, ConfigError } from "./errors.ts";
import type { Host } from "./host-name.ts";
import { LOOPBACK_RANGES } from "./loopback.ts";
import type { DocumentWord } from "./policy-document.ts";
import { buildPolicy, type Policy, type RuleInput } from "./policy.ts";
import { parseAllowPrivate } from "./private-host.ts";
import type { ListenAddress, ParsedProxyConfig } from "./proxy-config.ts";
import { warnSpecial } from "./special-entry.ts";
import type { Methods } from "./use.ts";
import type { PublicSuffixTest } from "./wildcard-check.ts";

export type ProxyPolicyInput = {
  parsed: ParsedProxyConfig;
  /** The user's own file where a project's counts: its denied_domains hold all the same. */
  user?: ParsedProxyConfig | undefined;
  /** What was allowed at the terminal; `until` is Unix time in ms. */
  session?: readonly DocumentWord[] | undefined;
  /** Takes the place of the file's. */
  mode?: Methods | undefined;
  /** The proxy's own listeners on loopback, where no client has business through the proxy. */
  own: readonly ListenAddress[];
  isPublicSuffix: PublicSuffixTest;
  /** Unix time in ms. */
  now: number;
};

/** Which hosts the stand-alone proxy lets through. */
export type ProxyPolicy = {
  policy: Policy;
  allowed: readonly EffectiveEntry[];
  denied: readonly EffectiveBlock[];
  passesThrough: (host: Host) => boolean;
  warnings: readonly string[];
  /** Unix time in ms at which the first word of the session ends and the policy has to be built again. */
  nextExpiry: number | undefined;
};

/** Builds the policy of a file: denied_domains win over allowed_domains, and what neither names is not allowed. Throws one ConfigError with every mistake. */
export function buildProxyPolicy({ parsed, user, session = [], mode, own, isPublicSuffix, now }: ProxyPolicyInput): ProxyPolicy {
  const complaints: Complaint[] = [];
  const { config, file } = parsed;
  const living = session.filter(({ until }) => until === undefined || until > now);
  const owners = user === undefined ? [parsed] : [parsed, user];
  const { entries, blocks } = collectEntries(
    {
      sources: [
        { label: file, surface: "list", words: placeWords(parsed, ["policy", "allowed_domains"]) },
        { label: "allowed at the terminal", surface: "list", words: living },
      ],
      blocks: owners.map((owner) => ({ label: owner.file, words: placeWords(owner, ["policy", "denied_domains"]) })),
      isPublicSuffix,
    },
    complaints,
  );
  const ranges = parseAllowPrivate(placeWords(parsed, ["policy", "allow_private"]));
  complaints.push(...ranges.complaints);
  const passthrough = parsePassthrough(placeWords(parsed, ["mitm", "passthrough"]), complaints);
  if (complaints.length > 0) throw new ConfigError(addExcerpts(complaints, parsed));
  const policy = buildPolicy({
    closed: closeOwn(own),
    blocks,
    list: entries,
    allowPrivate: [...ranges.ranges, ...(config.policy?.allow_local_binding === true ? LOOPBACK_RANGES : [])],
    methods: mode ?? config.mode ?? "full",
  });
  const ends = living.flatMap(({ until }) => (until === undefined ? [] : [until]));
  return {
    policy,
    allowed: entries,
    denied: blocks,
    passesThrough: (host) => passthrough.some((block) => blocksHost(block, host)),
    warnings: [...ranges.warnings, ...entries.flatMap(({ entry }) => warnSpecial(entry) ?? [])],
    nextExpiry: ends.length === 0 ? undefined : Math.min(...ends),
  };
}

/** Addresses that lead to this machine although they are not loopback's (connect(2) on Linux). */
const ANY_ADDRESSES = ["0.0.0.0", "::"];

/** A client that could reach the admin API through the proxy would need nothing but its token. */
function closeOwn(own: readonly ListenAddress[]): RuleInput[] {
  const ports = [...new Set(own.map(({ port }) => port))].toSorted((a, b) => a - b);
  if (ports.length === 0) return [];
  const ranges = new Map([...LOOPBACK_RANGES, ...[...ANY_ADDRESSES, ...own.map(({ address }) => address)].map(readRange)].map((range) => [range.text, range]));
  return [...ranges.values()].map((range) => ({ action: "deny", match: { kind: "range", range }, ports, text: range.text, origins: [{ label: "listeners of this proxy", text: range.text }] }));
}

function readRange(address: string): Range {
  const range = parseRange(address);
  if (!range.ok) throw new Error(`${address} is the address of a listener`);
  return range.value;
}

type WordKey = readonly ["policy", "allowed_domains" | "denied_domains" | "allow_private"] | readonly ["mitm", "passthrough"];

function placeWords({ config, placeOf }: ParsedProxyConfig, path: WordKey): DocumentWord[] {
  const words = path[0] === "policy" ? config.policy?.[path[1]] : config.mitm?.[path[1]];
  return (words ?? []).map((text, index) => ({ text, place: placeOf(["network_proxy", ...path, index]) }));
}
