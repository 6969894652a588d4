import type { Range } from "./address.ts";
import { blocksEverything, blocksHost, type Block } from "./block.ts";
import type { EffectiveBlock, EffectiveEntry, Origin } from "./effective-list.ts";
import { renderTarget } from "./entry.ts";
import type { Host } from "./host-name.ts";
import { LabelTree } from "./label-tree.ts";
import { RangeIndex } from "./range-index.ts";
import { NO_RULE, type Steps } from "./rule-slot.ts";
import type { Methods } from "./use.ts";

export type Action = "allow" | "deny";

/** One rule of the ordered policy. `text` is its canonical form, `index` its place in the order, from 0. */
export type PolicyRule = {
  index: number;
  tier: Tier;
  action: Action;
  match: Block;
  ports: readonly number[] | "any";
  text: string;
  origins: readonly Origin[];
  /** `tcp` where the ports of an allow rule speak neither TLS nor HTTP. */
  protocol: "web" | "tcp";
};

/** Where a rule comes from; the tiers are evaluated in this order. */
type Tier = "block" | "rules" | "list" | "base";

export type RuleInput = Pick<PolicyRule, "action" | "match" | "ports" | "text" | "origins"> & Partial<Pick<PolicyRule, "protocol">>;

/** A name whose addresses are opened on its ports, private or not; dotless names are possible only here. */
export type PrivateEntry = { name: string; ports: readonly number[]; text: string; origins: readonly Origin[] };

export type PolicyInput = {
  /** Deny rules that name ports and stand before everything. */
  closed?: readonly RuleInput[];
  /** Deny rules that win over everything. */
  blocks?: readonly EffectiveBlock[];
  /** Ordered rules as their author wrote them. */
  rules?: readonly RuleInput[];
  /** Allowed entries. */
  list?: readonly EffectiveEntry[];
  /** Names that may lead to private addresses, on these ports. They are allowed like entries of the list. */
  privateHosts?: readonly PrivateEntry[];
  /** The last word on names that nothing else matched; without it they are not allowed. */
  base?: RuleInput;
  /** Special-purpose blocks that allowed names may resolve to. */
  allowPrivate?: readonly Range[];
  /** `limited`: only methods that read, and no connection whose methods cannot be seen. `full` when left out. */
  methods?: Methods;
};

/** A validated policy: all sources as one ordered list, the first match wins. */
export type Policy = {
  rules: readonly PolicyRule[];
  allowPrivate: readonly Range[];
  methods: Methods;
  /** The ports on which a name may lead to private addresses. */
  privatePorts: ReadonlyMap<string, readonly number[]>;
  /** Whether a rule denies some ports only, so that a name with an allow rule may still have no open port. */
  deniesPorts: boolean;
  /** Whether a rule denies addresses, so that a public one may be refused although the name that leads to it is allowed. */
  deniesAddresses: boolean;
  /** Adds every port that a rule for this host names: those that `openPorts` has to try. */
  collectPorts: (host: Host, ports: Set<number>, steps?: Steps) => void;
  /** The first rule for this host and port; without a port see `LabelTree.find`. Equal to trying `rules` in turn. */
  find: (host: Host, port: number | undefined, steps?: Steps) => PolicyRule | undefined;
};

/** Builds the policy and its lookup. The order is: blocks, rules, list, base. */
export function buildPolicy({ closed = [], blocks = [], rules = [], list = [], privateHosts = [], base, allowPrivate = [], methods = "full" }: PolicyInput): Policy {
  const ordered: PolicyRule[] = [];
  const push = (tier: Tier, rule: RuleInput): void => {
    ordered.push({ ...rule, protocol: rule.protocol ?? "web", tier, index: ordered.length });
  };
  for (const rule of closed) push("block", rule);
  for (const { block, text, origin } of blocks) push("block", { action: "deny", match: block, ports: "any", text, origins: [origin] });
  for (const rule of rules) push("rules", rule);
  for (const { entry, text, origins } of list) push("list", { action: "allow", match: entry.target, ports: entry.ports, text, origins, protocol: entry.protocol });
  for (const { name, ports, text, origins } of privateHosts) push("list", { action: "allow", match: { kind: "pattern", pattern: { kind: "exact", name } }, ports, text, origins });
  if (base !== undefined) push("base", base);
  return {
    rules: ordered,
    allowPrivate,
    methods,
    privatePorts: new Map(privateHosts.map(({ name, ports }) => [name, ports])),
    deniesPorts: ordered.some(({ action, ports }) => action === "deny" && ports !== "any"),
    deniesAddresses: ordered.some(({ action, match }) => action === "deny" && (match.kind === "range" || blocksEverything(match))),
    ...makeLookup(ordered),
  };
}

/** A rule as a user reads it: `allow github.com:22,443`. */
export function renderRule({ action, match, ports }: PolicyRule): string {
  const target = match.kind === "glob" ? match.glob : renderTarget(match);
  if (ports === "any") return `${action} ${target}`;
  const bracketed = target.includes(":") ? `[${target}]` : target;
  return `${action} ${bracketed}:${ports.join(",")}`;
}

function makeLookup(rules: readonly PolicyRule[]): Pick<Policy, "find" | "collectPorts"> {
  const names = new LabelTree();
  const ranges = new RangeIndex();
  const globs: PolicyRule[] = [];
  for (const rule of rules) {
    if (rule.match.kind === "pattern") names.add(rule.match.pattern, rule);
    else if (rule.match.kind === "range") ranges.add(rule.match.range, rule);
    else globs.push(rule);
  }
  const find: Policy["find"] = (host, port, steps) => {
    const tabled = host.kind === "name" ? names.find(host.name, port, steps) : ranges.find(host.address, port, steps);
    const glob = findGlob(globs, host, port, tabled, steps);
    const index = glob?.index ?? tabled;
    return index === NO_RULE ? undefined : rules[index];
  };
  const collectPorts: Policy["collectPorts"] = (host, ports, steps) => {
    if (host.kind === "name") names.collectPorts(host.name, ports, steps);
    else ranges.collectPorts(host.address, ports, steps);
    for (const rule of globs) {
      if (steps !== undefined) steps.count += 1;
      if (rule.ports !== "any" && blocksHost(rule.match, host)) for (const port of rule.ports) ports.add(port);
    }
  };
  return { find, collectPorts };
}

/** Tries the globs in front of the rule found so far; their number is bounded by MAX_GLOBS. */
function findGlob(globs: readonly PolicyRule[], host: Host, port: number | undefined, before: number, steps: Steps | undefined): PolicyRule | undefined {
  for (const rule of globs) {
    if (rule.index > before) return undefined;
    if (steps !== undefined) steps.count += 1;
    const portMatches = rule.ports === "any" || (port === undefined ? rule.action === "allow" : rule.ports.includes(port));
    if (portMatches && blocksHost(rule.match, host)) return rule;
  }
  return undefined;
}
