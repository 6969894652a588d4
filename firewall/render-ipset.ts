import type { KernelSet, Plan } from "./rule.ts";

// ipset's own default; a set grows to it only as entries come.
const DEFAULT_MAX_ENTRIES = 65_536;

/** Renders `ipset -exist restore` text that makes every set of a plan exist, and changes none that does. */
export function renderEmptySets(plan: Plan): string {
  return plan.sets.map((set) => `create ${renderCreate(set.name, set)}\n`).join("");
}

/**
 * Renders `ipset -exist restore` text that fills the sets of a plan: each is built beside the live one
 * under another name and swapped in, so that no packet ever meets a half-filled set. Sets without
 * entries are filled too, so that a second run takes away what the first allowed.
 */
export function renderFilledSets(plan: Plan): string {
  return plan.sets
    .map((set) => {
      const next = set.name.replace("agentbox-", "agentbox-next-");
      return [
        `create ${renderCreate(set.name, set)}`,
        // A run that was killed may have left its own half-filled one.
        `create ${renderCreate(next, set)}`,
        `flush ${next}`,
        ...set.entries.map(({ range, protocol, port }) => `add ${next} ${range},${protocol}:${port}`),
        `swap ${next} ${set.name}`,
        `destroy ${next}`,
        "",
      ].join("\n");
    })
    .join("");
}

/** `timeout 0` lets single entries have a life of their own; these live as long as the set. */
function renderCreate(name: string, { family, entries }: KernelSet): string {
  const maxEntries = Math.max(DEFAULT_MAX_ENTRIES, entries.length * 2);
  return `${name} hash:net,port family ${family === 4 ? "inet" : "inet6"} maxelem ${maxEntries} timeout 0`;
}
