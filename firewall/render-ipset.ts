import { FAMILIES, type KernelSet, nameSets, type Plan } from "./rule.ts";

/** What learned and cut sets hold at most, and literal ones at least: ipset's own default. A set grows to it only as entries come. */
export const SET_CAPACITY = 65_536;

/** Renders `ipset -exist restore` text that makes every set of a plan exist, and changes none that does. */
export function renderEmptySets(plan: Plan): string {
  return plan.sets.map((set) => `create ${renderCreate(set.name, set)}\n`).join("");
}

/**
 * Renders `ipset -exist restore` text that fills the literal sets of a plan: each is built beside the live
 * one under another name and swapped in, so that no packet ever meets a half-filled set. A set without
 * entries is filled too, so that a second plan takes away what the first allowed. What was learned stays.
 */
export function renderLiteralSets(plan: Pick<Plan, "sets">): string {
  return [...renderNextSets(plan), ...renderSwaps(plan), ""].join("\n");
}

/** The first half: the lines that build the new sets beside the live ones. Repeating it begins anew. */
export function renderNextSets(plan: Pick<Plan, "sets">): string[] {
  return literalSets(plan).flatMap((set) => {
    const next = nameNext(set);
    // A run that was killed may have left its own half-filled one, of another size perhaps.
    return [
      `create ${renderCreate(next, set)}`,
      `destroy ${next}`,
      `create ${renderCreate(next, set)}`,
      ...set.entries.map(({ range, protocol, port }) => `add ${next} ${range},${protocol}:${port}`),
    ];
  });
}

/** The second half: the lines that put the new sets in place of the live ones. */
export function renderSwaps(plan: Pick<Plan, "sets">): string[] {
  return literalSets(plan).flatMap((set) => [`swap ${nameNext(set)} ${set.name}`, `destroy ${nameNext(set)}`]);
}

function literalSets(plan: Pick<Plan, "sets">): KernelSet[] {
  const literal = new Set(FAMILIES.map((family) => nameSets(family).literal));
  return plan.sets.filter(({ name }) => literal.has(name));
}

function nameNext({ name }: KernelSet): string {
  return name.replace("agentbox-", "agentbox-next-");
}

/** `timeout 0` lets single entries have a life of their own; these live as long as the set. */
function renderCreate(name: string, { family, entries }: KernelSet): string {
  const maxEntries = Math.max(SET_CAPACITY, entries.length * 2);
  return `${name} hash:net,port family ${family === 4 ? "inet" : "inet6"} maxelem ${maxEntries} timeout 0`;
}
