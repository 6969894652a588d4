import { NO_RULE, type Steps } from "./rule-slot.ts";
import { GlobTree } from "./sandbox-glob.ts";
import type { PatternPart } from "./sandbox-pattern.ts";
import { RuleSlot, type SlotRule } from "./sandbox-slot.ts";

/** The first and the last rule of each action, by index. */
type RulesBelow = Record<SlotRule["action"], { first: number; last: number }>;

/** A place in the tree, which stands for every pattern that begins with the way to it. */
export type PathNode = {
  names: Map<string, PathNode> | undefined;
  globs: GlobTree<PathNode> | undefined;
  /** After `**`. */
  deep: PathNode | undefined;
  /** Whether this node stands after `**`, which takes any number of components. */
  loops: boolean;
  /** Rules whose pattern ends here. */
  slot: RuleSlot | undefined;
  /** Rules that are about something below the paths that lead here. */
  below: RulesBelow;
};

/**
 * Finds the rules for a path. The tree branches by component from the top; a search holds the few places that
 * fit so far, whatever the number of rules.
 */
export class PathTree {
  private readonly root = makeNode(false);

  /** Adds a rule; rules must be added in their order of evaluation. */
  add(parts: readonly PatternPart[], rule: SlotRule): void {
    let node = this.root;
    for (const part of parts) {
      noteBelow(node, rule);
      node = childFor(node, part);
    }
    if (node.loops) noteBelow(node, rule);
    node.slot ??= new RuleSlot();
    node.slot.add(rule);
  }

  /** Returns the places that a whole path leads to. */
  walk(path: readonly string[], steps?: Steps): ReadonlySet<PathNode> {
    let active = new Set<PathNode>();
    enter(active, this.root);
    for (const name of path) {
      const next = new Set<PathNode>();
      for (const node of active) {
        if (steps !== undefined) steps.count += 1;
        if (node.loops) enter(next, node);
        const child = node.names?.get(name);
        if (child !== undefined) enter(next, child);
        node.globs?.match(name, (found) => enter(next, found), steps);
      }
      if (next.size === 0) return next;
      active = next;
    }
    return active;
  }
}

/** `**` also takes no component at all. */
function enter(active: Set<PathNode>, node: PathNode): void {
  active.add(node);
  if (node.deep !== undefined) active.add(node.deep);
}

function noteBelow({ below }: PathNode, { index, action }: SlotRule): void {
  const { first, last } = below[action];
  below[action] = { first: Math.min(first, index), last: Math.max(last, index) };
}

function childFor(node: PathNode, part: PatternPart): PathNode {
  if (part.kind === "deep") return (node.deep ??= makeNode(true));
  if (part.kind === "glob") return (node.globs ??= new GlobTree()).at(part.tokens, () => makeNode(false));
  node.names ??= new Map();
  const child = node.names.get(part.name) ?? makeNode(false);
  node.names.set(part.name, child);
  return child;
}

const NONE = { first: NO_RULE, last: -1 };

function makeNode(loops: boolean): PathNode {
  return { names: undefined, globs: undefined, deep: undefined, loops, slot: undefined, below: { allow: NONE, deny: NONE, confirm: NONE } };
}
