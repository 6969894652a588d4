import { parseAddress, type Range, rangeCovers } from "../policy/address.ts";
import { classifyAddress } from "../policy/address-class.ts";
import { type EffectiveList, namesToResolve } from "../policy/effective-list.ts";
import type { Resolution } from "./resolve.ts";
import type { SetEntry } from "../firewall/rule.ts";

/** What the effective list opens in the kernel, and what it does not open although it was asked for. */
export type Openings = {
  literal: SetEntry[];
  learned: SetEntry[];
  /** The addresses of each name that are opened. */
  reachable: ReadonlyMap<string, readonly string[]>;
  /** Addresses of allowed names that are refused because they are special-purpose. */
  refused: { name: string; address: string; kind: string }[];
};

export type OpeningsInput = {
  list: Pick<EffectiveList, "entries">;
  resolutions: readonly Resolution[];
  /** Blocks that GitHub publishes; empty while github.com is not in the list. */
  githubRanges: readonly Range[];
};

const GITHUB_PORTS = [22, 443];

/** Pairs every allowed address with its ports. Pure; names come in resolved. */
export function collectOpenings({ list, resolutions, githubRanges }: OpeningsInput): Openings {
  const ranges = list.entries.flatMap(({ entry }) => (entry.target.kind === "range" ? [{ range: entry.target.range, ports: entry.ports }] : []));
  const github = githubRanges.map((range) => ({ range, ports: GITHUB_PORTS }));
  const portsByName = new Map<string, Set<number>>();
  for (const { entry } of list.entries) {
    for (const name of namesToResolve(entry)) {
      portsByName.set(name, new Set([...(portsByName.get(name) ?? []), ...entry.ports]));
    }
  }
  const learned: SetEntry[] = [];
  const reachable = new Map<string, string[]>();
  const refused: Openings["refused"] = [];
  for (const { name, addresses } of resolutions) {
    for (const text of addresses) {
      const address = parseAddress(text);
      if (!address.ok) continue;
      const judged = classifyAddress(address.value);
      if (judged.kind === "special") {
        refused.push({ name, address: text, kind: judged.name });
        continue;
      }
      reachable.set(name, [...(reachable.get(name) ?? []), address.value.text]);
      for (const port of portsByName.get(name) ?? []) learned.push({ range: address.value.text, protocol: "tcp", port });
    }
  }
  return { literal: expandRanges([...ranges, ...github]), learned, reachable, refused };
}

/** One set entry a port; blocks inside another block of the same port are left out, since nftables refuses overlaps. */
function expandRanges(ranges: readonly { range: Range; ports: readonly number[] }[]): SetEntry[] {
  const ports = [...new Set(ranges.flatMap((item) => item.ports))];
  // Sorted like this, a block that lies inside another comes right after it or after others inside it.
  const sorted = ranges.toSorted(({ range: a }, { range: b }) => a.family - b.family || compare(a.base, b.base) || a.prefix - b.prefix);
  return ports.flatMap((port) => {
    const kept: Range[] = [];
    for (const { range } of sorted.filter((item) => item.ports.includes(port))) {
      const last = kept.at(-1);
      if (last === undefined || !rangeCovers(last, range)) kept.push(range);
    }
    return kept.map((range): SetEntry => ({ range: range.text, protocol: "tcp", port }));
  });
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
