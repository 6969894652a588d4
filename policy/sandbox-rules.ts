import { ConfigError, type Complaint } from "./errors.ts";
import type { Parsed } from "./parsed.ts";
import { NO_RULE, type Steps } from "./rule-slot.ts";
import { canonicalName, foldName } from "./sandbox-name.ts";
import { parsePathPattern, type GlobToken, type PathPattern, type PatternPart } from "./sandbox-pattern.ts";
import type { SandboxRuleText } from "./sandbox-schema.ts";
import type { SlotRule } from "./sandbox-slot.ts";
import { PathTree, type PathNode } from "./sandbox-tree.ts";
import { parseRuleId, parseSize, SANDBOX_TAGS, type SandboxIntent, type SandboxTag } from "./sandbox-words.ts";

/** A path as rules see it: components below the grant's root, and below `/`; `folding` where its directory takes `A` for `a`. */
export type RulePath = { relative: readonly string[]; absolute: readonly string[]; folding: boolean };

/** Places of the trees that a path leads to, so that several questions about it cost one walk. */
export type LocatedPath = { nodes: ReadonlySet<PathNode>; extensions: readonly string[] };

export type RuleQuestion = { intent: SandboxIntent; size: number | undefined; tags: readonly SandboxTag[] };

type Trees = { relative: PathTree; absolute: PathTree };
type Compiled = { rule: SandboxRuleText; pattern: PathPattern; slot: SlotRule };

const EVERYTHING: PathPattern = { absolute: false, parts: [{ kind: "deep" }] };

/**
 * The ordered rules of the file guard, ready to be asked. Throws ConfigError with all mistakes for rules that did not come
 * through the schema.
 */
export class SandboxRules {
  private readonly compiled: readonly Compiled[];
  private readonly exact: Trees;
  /** Made when the first path of a directory that folds is asked about. */
  private folded: Trees | undefined;

  constructor(rules: readonly SandboxRuleText[]) {
    const complaints: Complaint[] = [];
    this.compiled = rules.flatMap((rule, index) => compileRule(rule, index, complaints));
    if (new Set(rules.map(({ id }) => id)).size !== rules.length) complaints.push({ what: "two rules have one id", expected: "an id of its own for each" });
    if (complaints.length > 0) throw new ConfigError(complaints);
    this.exact = this.plant(canonicalName);
  }

  /** Walks the trees for a path. `folding` says how, where that is not the path's own to say. */
  locate({ relative, absolute, folding: own }: RulePath, { steps, folding = own }: { steps?: Steps | undefined; folding?: boolean } = {}): LocatedPath {
    const trees = folding ? (this.folded ??= this.plant(foldName)) : this.exact;
    const spell = folding ? foldName : canonicalName;
    const nodes = [...trees.relative.walk(relative.map(spell), steps), ...trees.absolute.walk(absolute.map(spell), steps)];
    return { nodes: new Set(nodes), extensions: listExtensions(spell(absolute.at(-1) ?? "")) };
  }

  /** Finds the first rule that matches. */
  find({ nodes, extensions }: LocatedPath, { intent, size, tags }: RuleQuestion): SandboxRuleText | undefined {
    const question = { intent, size, tags: tagBits(tags), extensions };
    let best = NO_RULE;
    for (const { slot } of nodes) if (slot !== undefined) best = slot.first(question, best);
    return this.compiled[best]?.rule;
  }

  /**
   * Finds a rule that would not hold any more for what lies below a directory once that is called otherwise: one
   * that restricts the old place only, or one that restricts both and that an earlier one of the new place lifts.
   */
  findEvaded(from: RulePath, to: RulePath, steps?: Steps): SandboxRuleText | undefined {
    const folding = from.folding || to.folding;
    const [old, current] = [from, to].map((path) => [...this.locate(path, { steps, folding }).nodes]);
    if (old === undefined || current === undefined) return undefined;
    const left = old.filter((node) => !current.includes(node));
    const entered = current.filter((node) => !old.includes(node));
    // A denial that became a question is lost as well.
    const denial = findLost("deny", Math.min(firstBelow("allow", entered), firstBelow("confirm", entered)), { left, old });
    return this.compiled[denial ?? findLost("confirm", firstBelow("allow", entered), { left, old }) ?? NO_RULE]?.rule;
  }

  private plant(spell: (name: string) => string): Trees {
    const trees = { relative: new PathTree(), absolute: new PathTree() };
    for (const { pattern, slot } of this.compiled) {
      const tree = pattern.absolute ? trees.absolute : trees.relative;
      tree.add(pattern.parts.map((part) => spellPart(part, spell)), { ...slot, extensions: slot.extensions?.map(spell) });
    }
    return trees;
  }
}

function findLost(action: SlotRule["action"], lifting: number, { left, old }: { left: readonly PathNode[]; old: readonly PathNode[] }): number | undefined {
  const lost = lastBelow(action, left);
  const kept = lastBelow(action, old);
  return lost !== -1 ? lost : lifting < kept ? kept : undefined;
}

function firstBelow(action: SlotRule["action"], nodes: readonly PathNode[]): number {
  return nodes.reduce((first, { below }) => Math.min(first, below[action].first), NO_RULE);
}

function lastBelow(action: SlotRule["action"], nodes: readonly PathNode[]): number {
  return nodes.reduce((last, { below }) => Math.max(last, below[action].last), -1);
}

function spellPart(part: PatternPart, spell: (name: string) => string): PatternPart {
  if (part.kind === "name") return { kind: "name", name: spell(part.name) };
  if (part.kind === "glob") return { kind: "glob", tokens: part.tokens.map((token): GlobToken => (typeof token === "string" ? token : { text: spell(token.text) })) };
  return part;
}

function compileRule(rule: SandboxRuleText, index: number, complaints: Complaint[]): Compiled[] {
  const id = parseRuleId(rule.id);
  const size: Parsed<number> = rule.min_size === undefined ? { ok: true, value: 0 } : parseSize(rule.min_size);
  const pattern: Parsed<PathPattern> = rule.path === undefined ? { ok: true, value: EVERYTHING } : parsePathPattern(rule.path);
  for (const part of [id, size, pattern]) if (!part.ok) complaints.push(part.complaint);
  if (!size.ok || !pattern.ok) return [];
  const slot = { index, action: rule.action, intents: rule.intent, minSize: size.value, extensions: rule.extension, tags: tagBits(rule.tags ?? []) };
  return [{ rule, pattern: pattern.value, slot }];
}

function tagBits(tags: readonly SandboxTag[]): number {
  return tags.reduce((bits, tag) => bits | (1 << SANDBOX_TAGS.indexOf(tag)), 0);
}

/** `a.tar.gz` ends with `.tar.gz` and with `.gz`. */
function listExtensions(name: string): string[] {
  const found: string[] = [];
  for (let at = name.indexOf("."); at !== -1; at = name.indexOf(".", at + 1)) found.push(name.slice(at));
  return found;
}
