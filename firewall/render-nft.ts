import type { Family } from "../policy/address.ts";
import { SET_CAPACITY } from "./render-ipset.ts";
import { type Chain, FAMILIES, type KernelSet, LOG_GROUP, LOG_LIMIT, LOG_PREFIX, type Match, nameSets, type Plan, REDIRECT_CHAIN, type Rule } from "./rule.ts";

const TABLE = "inet agentbox";

/**
 * Renders the rules of a plan as one `nft -f` transaction: an own table with native sets, for kernels without
 * ipset. Sets that exist stay as they are; rules that exist are replaced as a whole. Entries of literal sets
 * are `renderNftLiterals`'s.
 */
export function renderNft(plan: Plan): string {
  return [
    `table ${TABLE} {`,
    ...plan.sets.flatMap(renderSet),
    "}",
    // Takes the rules of an earlier run away, and neither chains nor sets: a chain without rules lets its packets go on.
    `flush table ${TABLE}`,
    `table ${TABLE} {`,
    ...FAMILIES.flatMap((family) => [...withoutHooksFirst(plan.chains[family]), ...(plan.redirect === undefined ? [] : [plan.redirect[family]])].flatMap((chain) => renderChain(chain, family))),
    ...renderHook("output", plan.chains[4][0]?.name),
    ...renderHook("input", plan.chains[4][1]?.name),
    "  chain forward {",
    "    type filter hook forward priority filter; policy drop;",
    "  }",
    ...(plan.redirect === undefined ? [] : renderNatHook()),
    "}",
    "",
  ].join("\n");
}

/** A jump names a chain that is there already. */
function withoutHooksFirst(chains: readonly Chain[]): readonly Chain[] {
  return [...chains.filter(({ hook }) => hook === undefined), ...chains.filter(({ hook }) => hook !== undefined)];
}

function renderChain(chain: Chain, family: Family): string[] {
  return [`  chain ${chain.name}-${family} {`, ...renderChainRules(chain, family).map((text) => `    ${text}`), "  }"];
}

/** Renders the rules of one chain, one line each. */
export function renderChainRules({ rules }: Chain, family: Family): string[] {
  return rules.flatMap((rule) => renderRules(rule, family));
}

/**
 * Names the set that holds the blocks of the cut set, whose own one holds single addresses: a set of blocks takes
 * seconds for what the other does in none, and nearly all is single.
 */
export function nameCutBlocks(family: Family): string {
  return `${nameSets(family).cut}-blocks`;
}

/** Renders one line, a transaction of `nft`, that replaces the entries of the literal sets. */
export function renderNftLiterals(plan: Pick<Plan, "sets">): string {
  const literal = new Set(FAMILIES.map((family) => nameSets(family).literal));
  return plan.sets
    .filter(({ name }) => literal.has(name))
    .flatMap(({ name, entries }) => {
      const elements = entries.map(({ range, protocol, port }) => `${range} . ${protocol} . ${port}`);
      return [`flush set ${TABLE} ${name}`, ...(elements.length === 0 ? [] : [`add element ${TABLE} ${name} { ${elements.join(", ")} }`])];
    })
    .join("; ");
}

function renderHook(hook: "output" | "input", chain: string | undefined): string[] {
  return [
    `  chain ${hook} {`,
    `    type filter hook ${hook} priority filter; policy drop;`,
    ...FAMILIES.map((family) => `    meta nfproto ipv${family} jump ${chain}-${family}`),
    "  }",
  ];
}

/** Ahead of everybody else's NAT, as position 1 is for iptables. */
function renderNatHook(): string[] {
  return [
    "  chain nat-output {",
    "    type nat hook output priority -101; policy accept;",
    ...FAMILIES.map((family) => `    meta nfproto ipv${family} jump ${REDIRECT_CHAIN}-${family}`),
    "  }",
  ];
}

function renderSet({ name, family }: KernelSet): string[] {
  const { literal, cut } = nameSets(family);
  if (name === literal) return declareSet(name, family, ["flags interval,timeout"]);
  const single = declareSet(name, family, [`size ${SET_CAPACITY}`, "flags timeout"]);
  return name === cut ? [...single, ...declareSet(nameCutBlocks(family), family, [`size ${SET_CAPACITY}`, "flags interval,timeout"])] : single;
}

function declareSet(name: string, family: Family, properties: readonly string[]): string[] {
  return [`  set ${name} {`, ...[`type ipv${family}_addr . inet_proto . inet_service`, ...properties].map((line) => `    ${line}`), "  }"];
}

/** The cut set is two here. */
function renderRules(rule: Rule, family: Family): string[] {
  const rules = rule.match.set === nameSets(family).cut ? [rule, { ...rule, match: { ...rule.match, set: nameCutBlocks(family) } }] : [rule];
  return rules.map((each) => renderRule(each, family));
}

function renderRule({ match, verdict }: Rule, family: Family): string {
  return [...renderMatch(match, family), renderVerdict(verdict, family)].join(" ");
}

function renderMatch(match: Match, family: Family): string[] {
  const ip = family === 4 ? "ip" : "ip6";
  const words: string[] = [];
  if (match.source !== undefined) words.push(ip, "saddr", match.source);
  if (match.destination !== undefined) words.push(ip, "daddr", match.destination);
  if (match.inInterface !== undefined) words.push("iifname", match.inInterface);
  if (match.outInterface !== undefined) words.push("oifname", match.outInterface);
  if (match.icmpv6Type !== undefined) words.push("icmpv6", "type", String(match.icmpv6Type));
  else if (match.protocol !== undefined) words.push("meta", "l4proto", match.protocol);
  if (match.port !== undefined) words.push("th", "dport", String(match.port));
  if (match.sourcePort !== undefined) words.push("th", "sport", String(match.sourcePort));
  if (match.begins) words.push("tcp", "flags", "&", "(fin | syn | rst | ack)", "==", "syn");
  if (match.foreignSource) words.push("fib", "saddr", "type", "!=", "local");
  if (match.routingHeader) words.push("exthdr", "rt", "exists");
  if (match.uid !== undefined) words.push("meta", "skuid", String(match.uid));
  if (match.established) words.push("ct", "state", "established,related");
  if (match.invalid) words.push("ct", "state", "invalid");
  if (match.notTranslated) words.push("ct", "state", "!=", "related", "ct", "status", "&", "dnat", "==", "0");
  if (match.set !== undefined) words.push(ip, "daddr", ".", "meta", "l4proto", ".", "th", "dport", `@${match.set}`);
  return words;
}

function renderVerdict(verdict: Rule["verdict"], family: Family): string {
  if (typeof verdict === "object") return "jump" in verdict ? `jump ${verdict.jump}-${family}` : `redirect to :${verdict.redirect}`;
  switch (verdict) {
    case "log-refused":
    case "log-report":
      return `limit rate ${LOG_LIMIT.perSecond}/second burst ${LOG_LIMIT.burst} packets log prefix "${LOG_PREFIX[verdict]}" group ${LOG_GROUP}`;
    case "accept":
    case "drop":
    case "return":
      return verdict;
    case "tcp-reset":
      return "reject with tcp reset";
    case "reject":
      return "reject with icmpx admin-prohibited";
  }
}
