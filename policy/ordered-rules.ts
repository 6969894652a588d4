import { MAX_GLOBS, type Block } from "./block.ts";
import { parseEntry, parseTarget, renderTarget } from "./entry.ts";
import type { Complaint, Place } from "./errors.ts";
import { GIT_SSH_HOSTS } from "./git-hosts.ts";
import { parsed, quote, refused, trimBlanks, type Parsed } from "./parsed.ts";
import type { RuleInput } from "./policy.ts";
import type { DocumentRule } from "./policy-document.ts";
import { refuseOpenWildcard, type PublicSuffixTest } from "./wildcard-check.ts";

/** Ports that an ordered rule opens when it names none. */
const WEB_PORTS = [80, 443] as const;
const SSH_PORT = 22;
const RULES_LABEL = "rules";

/** What the rules say, ready for `buildPolicy`; `warnings` are sentences about rules that are legal and open much. */
export type OrderedRules = { rules: RuleInput[]; complaints: Complaint[]; warnings: string[] };

/**
 * Parses ordered rules. An allow rule without ports opens 80 and 443, and 22 for the git hosts. A deny
 * rule without ports denies every port: whoever forbids a host does not mean to leave one open. `*` allows
 * every name and no literal address, but denies both.
 */
export function parseOrderedRules(written: readonly DocumentRule[], isPublicSuffix: PublicSuffixTest): OrderedRules {
  const found: OrderedRules = { rules: [], complaints: [], warnings: [] };
  for (const { domain, action, ports, place } of written) {
    const match = action === "allow" ? parseAllowed(domain, isPublicSuffix) : parseDenied(domain);
    if (!match.ok) {
      found.complaints.push({ ...match.complaint, place: place ?? { file: RULES_LABEL } });
      continue;
    }
    const text = match.value.kind === "glob" ? match.value.glob : renderTarget(match.value);
    const implied = action === "deny" ? "any" : impliedPorts(text);
    const rule: RuleInput = { action, match: match.value, ports: ports === undefined ? implied : sortPorts(ports), text, origins: [{ label: place?.file ?? RULES_LABEL, text: domain, place }] };
    found.rules.push(rule);
    if (action === "allow" && text === "*") found.warnings.push(warnOfEverything(place));
  }
  const globs = found.rules.filter(({ match }) => match.kind === "glob");
  const tooMany = globs[MAX_GLOBS];
  if (tooMany !== undefined) {
    found.complaints.push({ what: `${globs.length} rules that deny *`, expected: `at most ${MAX_GLOBS}`, fix: "remove all but the first", place: tooMany.origins[0]?.place ?? { file: RULES_LABEL } });
  }
  return found;
}

function parseAllowed(domain: string, isPublicSuffix: PublicSuffixTest): Parsed<Block> {
  const word = trimBlanks(domain);
  const target = parseTarget(word, "rules");
  if (!target.ok) return refusePorts(word) ?? target;
  if (target.value.kind === "pattern") return refuseOpenWildcard(target.value.pattern, isPublicSuffix) ?? target;
  // An allowed block is held to the same limits as an entry of a list.
  const entry = parseEntry(word, "rules");
  return entry.ok ? parsed(entry.value.target) : entry;
}

/** Denying too much is safe, so blocks of any size are taken, whole top-level domains, and `*` for everything. */
function parseDenied(domain: string): Parsed<Block> {
  const word = trimBlanks(domain).toLowerCase();
  if (word === "*") return parsed({ kind: "glob", glob: "*" });
  const topLevel = /^(?<stars>\*\*?)\.(?<suffix>[a-z0-9-]+)$/.exec(word)?.groups;
  if (topLevel?.["suffix"] !== undefined) {
    return parsed({ kind: "pattern", pattern: { kind: topLevel["stars"] === "**" ? "apex-and-below" : "below", suffix: topLevel["suffix"] } });
  }
  const target = parseTarget(word, "rules");
  return target.ok ? target : (refusePorts(word) ?? target);
}

function refusePorts(word: string): ReturnType<typeof refused> | undefined {
  const split = /^(?<host>[^:/]+):(?<ports>[0-9]+(?:,[0-9]+)*)$/.exec(word)?.groups;
  if (split?.["host"] === undefined) return undefined;
  return refused(`${quote(word)} names ports`, "a domain alone", `write domain = "${split["host"]}" and ports = [${split["ports"]?.split(",").join(", ") ?? ""}]`);
}

function impliedPorts(text: string): readonly number[] {
  return GIT_SSH_HOSTS.has(text) ? [SSH_PORT, ...WEB_PORTS] : WEB_PORTS;
}

function sortPorts(ports: readonly number[]): readonly number[] {
  return [...new Set(ports)].toSorted((a, b) => a - b);
}

function warnOfEverything(place: Place | undefined): string {
  const where = place === undefined ? "" : ` (${place.file}${place.line === undefined ? "" : `:${place.line}`})`;
  return `the rule allow *${where} opens every name that no earlier rule denies, and through names everything behind them`;
}
