import type { Family } from "../policy/address.ts";
import { type Chain, LOG_GROUP, LOG_LIMIT, LOG_PREFIX, type Match, type Plan, REDIRECT_CHAIN, type Rule, WEB_CHAIN } from "./rule.ts";

const POLICIES = [":INPUT DROP [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT DROP [0:0]"];

/**
 * Renders one family of a plan as input for `iptables-restore --noflush` (or `ip6tables-restore`).
 *
 * One COMMIT, so the kernel takes all of it or nothing. Only own chains are emptied; the built-in chains
 * keep foreign rules and get one jump at position 1. `saved` is what `iptables-save` reports now: jumps
 * found there are removed first, since deleting an absent one would fail the whole file.
 */
export function renderIptables(plan: Plan, family: Family, saved: string): string {
  const chains = plan.chains[family];
  return [
    "*filter",
    ...POLICIES,
    ...chains.map(({ name }) => `:${name} - [0:0]`),
    ...chains.flatMap((chain) => renderJumps(chain, saved)),
    ...renderRules(chains, family),
    ...(chains.some(({ name }) => name === WEB_CHAIN) || !hasChain(saved, WEB_CHAIN) ? [] : [`:${WEB_CHAIN} - [0:0]`, `-X ${WEB_CHAIN}`]),
    "COMMIT",
    "",
  ].join("\n");
}

function hasChain(saved: string, name: string): boolean {
  return saved.split("\n").some((line) => line.startsWith(`:${name} `));
}

/**
 * Renders the NAT rules of one family, or what takes those of an earlier run away; empty where there is nothing to do.
 * `saved` as in `renderIptables`; built-in chains and their policies stay as they are.
 */
export function renderIptablesNat({ redirect }: Plan, family: Family, saved: string): string {
  const chain = redirect?.[family];
  const jumps = chain === undefined ? renderStale({ name: REDIRECT_CHAIN, hook: "OUTPUT" }, saved) : renderJumps(chain, saved);
  if (chain === undefined && !hasChain(saved, REDIRECT_CHAIN)) return "";
  return ["*nat", `:${REDIRECT_CHAIN} - [0:0]`, ...jumps, ...(chain === undefined ? [`-X ${REDIRECT_CHAIN}`] : renderRules([chain], family)), "COMMIT", ""].join("\n");
}

function renderJumps({ name, hook }: Chain, saved: string): string[] {
  return hook === undefined ? [] : [...renderStale({ name, hook }, saved), `-I ${hook} 1 -j ${name}`];
}

function renderStale({ name, hook }: Required<Pick<Chain, "name" | "hook">>, saved: string): string[] {
  const jump = `${hook} -j ${name}`;
  return saved.split("\n").flatMap((line) => (line === `-A ${jump}` ? [`-D ${jump}`] : []));
}

function renderRules(chains: readonly Chain[], family: Family): string[] {
  return chains.flatMap(({ name, rules }) => rules.map((rule) => `-A ${name} ${renderRule(rule, family)}`));
}

function renderRule({ match, verdict }: Rule, family: Family): string {
  return [...renderMatch(match), ...renderVerdict(verdict, family)].join(" ");
}

function renderMatch(match: Match): string[] {
  const words: string[] = [];
  if (match.source !== undefined) words.push("-s", match.source);
  if (match.destination !== undefined) words.push("-d", match.destination);
  if (match.inInterface !== undefined) words.push("-i", match.inInterface);
  if (match.outInterface !== undefined) words.push("-o", match.outInterface);
  if (match.protocol !== undefined) words.push("-p", match.protocol === "icmpv6" ? "ipv6-icmp" : match.protocol);
  if (match.icmpv6Type !== undefined) words.push("-m", "icmp6", "--icmpv6-type", String(match.icmpv6Type));
  if (match.port !== undefined && match.protocol !== undefined) words.push("-m", match.protocol, "--dport", String(match.port));
  if (match.sourcePort !== undefined && match.protocol !== undefined) words.push("-m", match.protocol, "--sport", String(match.sourcePort));
  if (match.begins) words.push("-m", "tcp", "--tcp-flags", "FIN,SYN,RST,ACK", "SYN");
  if (match.foreignSource) words.push("-m", "addrtype", "!", "--src-type", "LOCAL");
  if (match.routingHeader) words.push("-m", "rt");
  if (match.uid !== undefined) words.push("-m", "owner", "--uid-owner", String(match.uid));
  if (match.established) words.push("-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED");
  if (match.invalid) words.push("-m", "conntrack", "--ctstate", "INVALID");
  if (match.notTranslated) words.push("-m", "conntrack", "!", "--ctstate", "RELATED,DNAT");
  if (match.set !== undefined) words.push("-m", "set", "--match-set", match.set, "dst,dst");
  return words;
}

const LIMIT = ["-m", "limit", "--limit", `${LOG_LIMIT.perSecond}/sec`, "--limit-burst", String(LOG_LIMIT.burst)];

function renderVerdict(verdict: Rule["verdict"], family: Family): string[] {
  if (typeof verdict === "object") return "jump" in verdict ? ["-j", verdict.jump] : ["-j", "REDIRECT", "--to-ports", String(verdict.redirect)];
  switch (verdict) {
    case "log-refused":
    case "log-report":
      return [...LIMIT, "-j", "NFLOG", "--nflog-prefix", LOG_PREFIX[verdict], "--nflog-group", String(LOG_GROUP)];
    case "accept":
      return ["-j", "ACCEPT"];
    case "drop":
      return ["-j", "DROP"];
    case "return":
      return ["-j", "RETURN"];
    case "tcp-reset":
      return ["-j", "REJECT", "--reject-with", "tcp-reset"];
    case "reject":
      return ["-j", "REJECT", "--reject-with", family === 4 ? "icmp-admin-prohibited" : "icmp6-adm-prohibited"];
  }
}
