import { NO_RULE } from "./rule-slot.ts";
import { SANDBOX_INTENTS, type SandboxIntent } from "./sandbox-words.ts";

/** A rule as the lookup sees it. `tags` is a set of bits, 0 for a rule that does not ask for risks. */
export type SlotRule = { index: number; action: "allow" | "deny" | "confirm"; intents: readonly SandboxIntent[] | undefined; minSize: number; extensions: readonly string[] | undefined; tags: number };

/** What is asked of a slot. `extensions` are all ends of the name that begin with a dot; an unknown size is undefined. */
export type SlotQuestion = { intent: SandboxIntent; extensions: readonly string[]; size: number | undefined; tags: number };

/** Rules of one kind that differ in their least size: the earliest first, each later one for smaller sizes than all before it. */
type Ladder = { minSizes: number[]; indexes: number[] };
/** By the bits of the tags; there are 256 sets at most. */
type Ladders = Map<number, Ladder>;
type Sides = { restricting: Ladders; allowing: Ladders };
type Group = { plain: Sides; byExtension: Map<string, Sides> | undefined };

/**
 * The rules that end at one place of the tree. What a rule asks for beside the path is looked up, not gone
 * through: intent and extension by their words, size by halving. A rule that can never be the first is dropped.
 */
export class RuleSlot {
  private readonly byIntent = new Map<SandboxIntent, Group>();

  /** Adds a rule; rules must be added in their order of evaluation. */
  add(rule: SlotRule): void {
    for (const intent of rule.intents ?? SANDBOX_INTENTS) {
      const group = this.byIntent.get(intent) ?? { plain: makeSides(), byExtension: undefined };
      this.byIntent.set(intent, group);
      if (rule.extensions === undefined) addToSides(group.plain, rule);
      else for (const extension of rule.extensions) addToSides(sidesFor(group, extension), rule);
    }
  }

  /** Returns the smaller of `best` and the index of the first rule that matches. */
  first({ intent, extensions, size, tags }: SlotQuestion, best: number): number {
    const group = this.byIntent.get(intent);
    if (group === undefined) return best;
    let found = firstOf(group.plain, size, tags, best);
    if (group.byExtension === undefined) return found;
    for (const extension of extensions) {
      const sides = group.byExtension.get(extension);
      if (sides !== undefined) found = firstOf(sides, size, tags, found);
    }
    return found;
  }
}

/** A size that nobody knows is as large as a rule that restricts could fear, and as small as one that allows could hope. */
function firstOf({ restricting, allowing }: Sides, size: number | undefined, tags: number, best: number): number {
  return climb(allowing, size ?? 0, tags, climb(restricting, size ?? Number.POSITIVE_INFINITY, tags, best));
}

function climb(ladders: Ladders, size: number, tags: number, best: number): number {
  let found = best;
  for (const [asked, { minSizes, indexes }] of ladders) {
    if (asked !== 0 && (asked & tags) === 0) continue;
    let [low, high] = [0, minSizes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((minSizes[middle] ?? 0) <= size) high = middle;
      else low = middle + 1;
    }
    found = Math.min(found, indexes[low] ?? NO_RULE);
  }
  return found;
}

function addToSides({ restricting, allowing }: Sides, { index, action, minSize, tags }: SlotRule): void {
  const ladders = action === "allow" ? allowing : restricting;
  const ladder = ladders.get(tags) ?? { minSizes: [], indexes: [] };
  ladders.set(tags, ladder);
  const least = ladder.minSizes.at(-1);
  if (least !== undefined && least <= minSize) return;
  ladder.minSizes.push(minSize);
  ladder.indexes.push(index);
}

function sidesFor(group: Group, extension: string): Sides {
  group.byExtension ??= new Map();
  const sides = group.byExtension.get(extension) ?? makeSides();
  group.byExtension.set(extension, sides);
  return sides;
}

function makeSides(): Sides {
  return { restricting: new Map(), allowing: new Map() };
}
