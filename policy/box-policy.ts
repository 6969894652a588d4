import { type Block, blocksHost, parseBlock } from "./block.ts";
import { checkCritical, type CriticalService } from "./critical-service.ts";
import { decide } from "./decide.ts";
import { collectEntries, type EffectiveEntry, type EffectiveList } from "./effective-list.ts";
import { type Entry, renderEntry } from "./entry.ts";
import { collectComplaints, ConfigError, type Complaint } from "./errors.ts";
import type { Host } from "./host-name.ts";
import { parseOrderedRules } from "./ordered-rules.ts";
import { buildPolicy, type Policy, type PrivateEntry, type RuleInput } from "./policy.ts";
import type { DocumentWord, ListTexts, NameWall, PolicyDocument } from "./policy-document.ts";
import { answersName, judgeByPolicy, namesToProbe, opensNothing } from "./policy-reach.ts";
import { parseAllowPrivate, parsePrivateHosts } from "./private-host.ts";
import { type GithubFile, parseGithubFile, parseServicesFile } from "./services-file.ts";
import { warnSpecial } from "./special-entry.ts";
import { loadPublicSuffixTest, type PublicSuffixTest } from "./wildcard-check.ts";

/** The policy of one box, ready to decide with: made by this one function on the host, in the entrypoint, the keeper and the proxy. */
export type BoxPolicy = {
  list: EffectiveList;
  policy: Policy;
  /** Names to resolve at the start, wildcards by their apex and probe; only those that the policy lets through, private ones not. */
  names: readonly string[];
  /** Names whose addresses are opened whatever they are, each with its ports. */
  private: readonly PrivateEntry[];
  /** The names of `private` that no block or rule takes away: to be resolved once in the life of a box. */
  privateNames: readonly string[];
  /** True where nothing can be reached at all: such a box gets no network. */
  opensNothing: boolean;
  ssh: PolicyDocument["ssh"];
  report: boolean;
  enforcement: PolicyDocument["enforcement"];
  nameWall: NameWall;
  /** Tells whether the owner wants the TLS of a host left alone. */
  passesThrough: (host: Host) => boolean;
  /** Sentences about what is legal and opens much. */
  warnings: readonly string[];
  /** Unix time in ms at which the first word with `until` ends and the policy has to be built again; undefined where none does. */
  nextExpiry: number | undefined;
};

export type BoxPolicyInput = {
  document: PolicyDocument;
  lists: ListTexts;
  isPublicSuffix: PublicSuffixTest;
  /** Unix time in ms; words whose `until` lies before it are left out. */
  now: number;
};

const SERVICES_FILE = "allowlists/services.sh";
const GITHUB_FILE = "allowlists/github.sh";
const CRITICAL_LABEL = "network.critical";
/** The ports of git and of the web; the name wall judges the web by its names. */
const GITHUB_PORTS = { address: [22, 443], name: [22] } as const;

/** Builds the policy of a box as `buildBoxPolicy` does, and loads the table of public suffixes only where a text holds a wildcard. */
export async function loadBoxPolicy(input: Omit<BoxPolicyInput, "isPublicSuffix">): Promise<BoxPolicy> {
  const { agent, sources, rules } = input.document;
  // Comments explain wildcards; they are no reason to load the table.
  const lines = input.lists.services.split("\n").filter((line) => !/^[ \t]*#/.test(line));
  const texts = [...lines, ...agent.hosts, ...sources.flatMap(({ words }) => words.map(({ text }) => text)), ...rules.map(({ domain }) => domain)];
  return buildBoxPolicy({ ...input, isPublicSuffix: await loadPublicSuffixTest(texts) });
}

/**
 * Builds the policy of a box. The first match decides, in the order: blocks, ordered rules, entries of all
 * lists and private names, GitHub's ranges while github.com is allowed.
 *
 * Errors: one ConfigError with every mistake, each with file and line.
 */
export function buildBoxPolicy({ document, lists, isPublicSuffix, now }: BoxPolicyInput): BoxPolicy {
  const complaints: Complaint[] = [];
  const services = collectComplaints(complaints, () => parseServicesFile(SERVICES_FILE, lists.services)) ?? { allowed: [], critical: [] };
  const github = collectComplaints(complaints, () => parseGithubFile(GITHUB_FILE, lists.github));
  const { alive, nextExpiry } = dropExpired(document, now);
  const entries = collectEntries(
    {
      sources: [
        { label: SERVICES_FILE, surface: "allowlist-file", words: services.allowed },
        { label: `agent ${document.agent.name}`, surface: "allowlist-file", words: document.agent.hosts.map((text) => ({ text })) },
        ...alive.sources,
      ],
      blocks: alive.blocks,
      isPublicSuffix,
    },
    complaints,
  );
  const rules = parseOrderedRules(document.rules, isPublicSuffix);
  const privates = parsePrivateHosts(document.private);
  const ranges = parseAllowPrivate(alive.allowPrivate);
  complaints.push(...rules.complaints, ...privates.complaints, ...ranges.complaints);

  const build = (further: readonly EffectiveEntry[]): Policy =>
    buildPolicy({
      closed: document.ssh === "off" ? [CLOSED_SSH] : [],
      blocks: entries.blocks,
      rules: rules.rules,
      list: [...entries.entries, ...further],
      privateHosts: privates.hosts,
      allowPrivate: ranges.ranges,
      methods: document.nameWall.methods,
      ...(document.base === "deny-list" ? { base: OPEN_BASE } : {}),
    });
  // Blocks of addresses do not change what holds for a name, so the usual case needs one building only.
  const withGithub = build(github === undefined ? [] : describeRanges(github, document.enforcement));
  const policy = decide(withGithub, { host: "github.com", port: 443 }).action === "allow" ? withGithub : build([]);
  const closed = opensNothing(policy);
  const passthrough = parsePassthrough(document.nameWall.passthrough, complaints);
  const critical = closed ? [] : checkServices({ document, words: alive.critical ?? services.critical, policy, complaints });
  if (complaints.length > 0) throw new ConfigError(complaints);
  let names: readonly string[] | undefined;
  return {
    list: { ...entries, critical },
    policy,
    // Only a start asks for them, and long lists have many.
    get names() {
      return (names ??= namesToProbe(policy));
    },
    private: privates.hosts,
    privateNames: privates.hosts.map(({ name }) => name).filter((name) => answersName(policy, name)),
    opensNothing: closed,
    ssh: document.ssh,
    report: document.report,
    enforcement: document.enforcement,
    nameWall: document.nameWall,
    passesThrough: (host) => passthrough.some((block) => blocksHost(block, host)),
    warnings: [...rules.warnings, ...ranges.warnings, ...entries.entries.flatMap(({ entry }) => warnSpecial(entry) ?? []), ...(document.ssh === "any" ? ["ssh = any opens port 22 of every public address"] : [])],
    nextExpiry,
  };
}

/** `ssh = "off"`: port 22 is closed whatever lists it. */
const CLOSED_SSH: RuleInput = { action: "deny", match: { kind: "glob", glob: "*" }, ports: [22], text: "*", origins: [{ label: "ssh = off", text: "off" }] };

/** `deny-list`: every name that no rule mentions, on the ports that the name wall judges. An address has no name to judge. */
const OPEN_BASE: RuleInput = { action: "allow", match: { kind: "pattern", pattern: { kind: "all" } }, ports: [80, 443], text: "*", origins: [{ label: "policy.mode = deny-list", text: "*" }] };

/** Parses the hosts whose TLS is left alone, and adds what is wrong to `complaints`. */
export function parsePassthrough(words: readonly DocumentWord[], complaints: Complaint[]): readonly Block[] {
  return words.flatMap(({ text, place }) => {
    const block = parseBlock(text);
    if (block.ok) return [block.value];
    complaints.push({ ...block.complaint, place: place ?? { file: "network_proxy.mitm.passthrough" } });
    return [];
  });
}

type LivingWords = Pick<PolicyDocument, "sources" | "blocks" | "allowPrivate" | "critical">;

/** Leaves out the words whose time is over, and finds the moment at which the next one ends. */
function dropExpired({ sources, blocks, allowPrivate, critical }: PolicyDocument, now: number): { alive: LivingWords; nextExpiry: number | undefined } {
  const living = (words: readonly DocumentWord[]): DocumentWord[] => words.filter(({ until }) => until === undefined || until > now);
  const alive = {
    sources: sources.map(({ label, surface, words }) => ({ label, surface, words: living(words) })),
    blocks: blocks.map(({ label, words }) => ({ label, words: living(words) })),
    allowPrivate: living(allowPrivate),
    critical: critical === null ? null : living(critical),
  };
  const words = [...alive.sources, ...alive.blocks].flatMap((source) => source.words).concat(alive.allowPrivate, alive.critical ?? []);
  const ends = words.flatMap(({ until }) => (until === undefined ? [] : [until]));
  return { alive, nextExpiry: ends.length === 0 ? undefined : ends.reduce((a, b) => Math.min(a, b)) };
}

type ServiceCheck = { document: PolicyDocument; words: readonly DocumentWord[]; policy: Policy; complaints: Complaint[] };

/** The owner's own list is taken as it is; in the image's one the agent's host takes its place. */
function checkServices({ document, words, policy, complaints }: ServiceCheck): readonly CriticalService[] {
  const own = document.critical !== null;
  const judge = judgeByPolicy(policy, own ? { list: "allow_hosts", critical: CRITICAL_LABEL } : { list: "ALLOWED_SERVICES", critical: "CRITICAL_SERVICES" });
  return checkCritical({ words, label: own ? CRITICAL_LABEL : SERVICES_FILE, agent: own ? undefined : document.agent, judge, complaints });
}

/** GitHub's blocks are entries like any other, on the ports of git and of the web. */
function describeRanges({ ranges, places }: GithubFile, enforcement: PolicyDocument["enforcement"]): readonly EffectiveEntry[] {
  return ranges.map((range) => {
    const entry: Entry = { target: { kind: "range", range }, ports: GITHUB_PORTS[enforcement], protocol: "web" };
    return { entry, text: renderEntry(entry), origins: [{ label: GITHUB_FILE, text: range.text, place: places.get(range.text) }] };
  });
}
