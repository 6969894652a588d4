import { type Range, rangeCovers, rangeOf } from "./address.ts";
import { blocksEverything } from "./block.ts";
import type { Host } from "./host-name.ts";
import type { Policy, PolicyRule } from "./policy.ts";
import type { Steps } from "./rule-slot.ts";

/** The ports on which the policy lets this host through, ascending; empty for a host that it does not. The number of rules does not count, only those for this host. */
export function openPorts(policy: Policy, host: Host, steps?: Steps): readonly number[] {
  const named = new Set<number>();
  policy.collectPorts(host, named, steps);
  return [...named].filter((port) => policy.find(host, port, steps)?.action === "allow").toSorted((a, b) => a - b);
}

/** Tells whether the rule that opens this port says that it speaks neither TLS nor HTTP, so that no name can be read there. */
export function isOpaque(policy: Policy, host: Host, port: number): boolean {
  const rule = policy.find(host, port);
  return rule?.action === "allow" && rule.protocol === "tcp";
}

/** One element a block and port; the blocks of one port do not overlap. */
export type OpenRange = { range: Range; port: number };

/**
 * The address blocks that the policy opens by literal entries, less what earlier rules deny. Blocks of
 * one port never overlap: one inside another is left out, since nftables refuses overlaps, and a block
 * with a hole becomes the blocks around it.
 */
export function openRanges(policy: Policy): readonly OpenRange[] {
  const ports = new Set<number>();
  for (const { match, action, ports: named } of policy.rules) {
    if (match.kind === "range" && action === "allow" && named !== "any") for (const port of named) ports.add(port);
  }
  return [...ports].toSorted((a, b) => a - b).flatMap((port) => openBlocks(policy.rules, port).map((range) => ({ range, port })));
}

/** What holds for the addresses of a block: the first rule of all that hold it. */
type Winner = { index: number; allows: boolean };
type Block = { range: Range; winner: Winner; inner: Block[] };

function openBlocks(rules: readonly PolicyRule[], port: number): readonly Range[] {
  const blocks = new Map<string, Block>();
  let outside: Winner = { index: rules.length, allows: false };
  for (const { match, action, ports, index } of rules) {
    if (ports !== "any" && !ports.includes(port)) continue;
    if (blocksEverything(match)) outside = earlier(outside, { index, allows: action === "allow" });
    if (match.kind !== "range" || blocks.has(match.range.text)) continue;
    blocks.set(match.range.text, { range: match.range, winner: { index, allows: action === "allow" }, inner: [] });
  }
  return nest([...blocks.values()]).flatMap((block) => openParts(block, outside));
}

/** Puts every block into the smallest that holds it. CIDR blocks hold one another or are apart. */
function nest(blocks: readonly Block[]): readonly Block[] {
  const outermost: Block[] = [];
  const around: Block[] = [];
  for (const block of blocks.toSorted(({ range: a }, { range: b }) => a.family - b.family || compare(a.base, b.base) || a.prefix - b.prefix)) {
    for (let last = around.at(-1); last !== undefined && !rangeCovers(last.range, block.range); last = around.at(-1)) around.pop();
    (around.at(-1)?.inner ?? outermost).push(block);
    around.push(block);
  }
  return outermost;
}

function openParts({ range, winner: own, inner }: Block, outer: Winner): readonly Range[] {
  const winner = earlier(outer, own);
  const parts = inner.flatMap((block) => openParts(block, winner));
  if (!winner.allows) return parts;
  const whole = inner.every((block) => isOpenWhole(block, winner));
  return whole ? [range] : [...remainder(range, inner.map((block) => block.range)), ...parts];
}

function isOpenWhole({ winner: own, inner }: Block, outer: Winner): boolean {
  const winner = earlier(outer, own);
  return winner.allows && inner.every((block) => isOpenWhole(block, winner));
}

/** The block less the holes, which lie inside it: it is halved until a part holds no hole or is one. */
function remainder(range: Range, holes: readonly Range[]): readonly Range[] {
  if (holes.length === 0) return [range];
  if (holes.some(({ prefix }) => prefix <= range.prefix)) return [];
  return halves(range).flatMap((half) => remainder(half, holes.filter((hole) => rangeCovers(half, hole))));
}

function halves({ family, base, prefix }: Range): readonly Range[] {
  const step = 1n << BigInt((family === 4 ? 32 : 128) - prefix - 1);
  return [base, base + step].map((value) => rangeOf(family, value, prefix + 1));
}

function earlier(a: Winner, b: Winner): Winner {
  return a.index < b.index ? a : b;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
