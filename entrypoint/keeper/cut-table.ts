import { parseRange, type Range, rangeCovers, rangeOf, rangesOverlap } from "../../policy/address.ts";
import type { SetChange } from "./kernel-sets.ts";

/** A block on one port. */
export type Target = { range: Range; port: number };

// The longest that ipset knows, 24 days: the kernel remembers a connection that is silent for five.
const CUT_LIFE_S = 2_147_483;

/**
 * What the cut set holds: connections to these are reset, whenever they began. It never holds anything that
 * is allowed, since its rule stands in front of all that let through.
 */
export class CutTable {
  private cut: Target[] = [];

  /** Cuts the targets, less what stays allowed; returns the changes of the kernel's set. */
  add(targets: readonly Target[], allowed: readonly Target[]): SetChange[] {
    const keep = new TargetIndex(allowed);
    const present = new TargetIndex(this.cut);
    const parts = targets.flatMap((target) => subtract(target, keep.touching(target))).filter((part) => !present.touching(part).some((known) => covers(known, part)));
    const unique = [...new Map(parts.map((part) => [keyOf(part), part])).values()];
    // nftables refuses elements that overlap.
    const wide = unique.filter((part) => !isSingle(part));
    const inner = new Set(this.cut.filter((known) => wide.some((part) => covers(part, known))));
    const distinct = unique.filter((part) => !wide.some((other) => other !== part && covers(other, part)));
    this.cut = [...this.cut.filter((known) => !inner.has(known)), ...distinct];
    return [...[...inner].map(renderDelete), ...distinct.map(renderAdd)];
  }

  /** Takes what is allowed out of the cut set again; returns the changes. */
  release(allowed: readonly Target[]): SetChange[] {
    const keep = new TargetIndex(allowed);
    const touched = new Set(this.cut.filter((known) => keep.touching(known).length > 0));
    if (touched.size === 0) return [];
    const rest = [...touched].flatMap((known) => subtract(known, keep.touching(known)));
    this.cut = [...this.cut.filter((known) => !touched.has(known)), ...rest];
    return [...[...touched].map(renderDelete), ...rest.map(renderAdd)];
  }

  /** What is cut now, for `restore`. */
  get targets(): readonly Target[] {
    return this.cut;
  }

  /** Goes back to what was cut before; the changes say all of it again, to a kernel that may have taken part of what came after. */
  restore(before: readonly Target[]): SetChange[] {
    const kept = new Set(before.map(keyOf));
    const fresh = this.cut.filter((target) => !kept.has(keyOf(target)));
    this.cut = [...before];
    return [...fresh.map(renderDelete), ...before.map(renderAdd)];
  }

  get size(): number {
    return this.cut.length;
  }
}

/** Finds what overlaps a target; single addresses, which are nearly all, by one look-up instead of a search. */
class TargetIndex {
  private readonly all: readonly Target[];
  private readonly wide: readonly Target[];
  private readonly single: ReadonlyMap<string, Target>;

  constructor(targets: readonly Target[]) {
    this.all = targets;
    this.wide = targets.filter((target) => !isSingle(target));
    this.single = new Map(targets.filter(isSingle).map((target) => [keyOf(target), target]));
  }

  touching(target: Target): Target[] {
    if (!isSingle(target)) return this.all.filter((other) => overlaps(other, target));
    const same = this.single.get(keyOf(target));
    return [...(same === undefined ? [] : [same]), ...this.wide.filter((other) => overlaps(other, target))];
  }
}

function isSingle({ range: { family, prefix } }: Target): boolean {
  return prefix === (family === 4 ? 32 : 128);
}

function keyOf({ range, port }: Target): string {
  return `${range.text} ${port}`;
}

/** The target of one address or block as it is written. */
export function targetOf(text: string, port: number): Target {
  const range = parseRange(text);
  if (!range.ok) throw new TypeError(range.complaint.what);
  return { range: range.value, port };
}

/** The blocks of a target that hold nothing of `holes`: it is halved until a part holds no hole or is one. */
function subtract(target: Target, holes: readonly Target[]): Target[] {
  const inside = holes.filter((hole) => overlaps(target, hole));
  if (inside.length === 0) return [target];
  if (inside.some((hole) => rangeCovers(hole.range, target.range))) return [];
  const { family, base, prefix } = target.range;
  const step = 1n << BigInt((family === 4 ? 32 : 128) - prefix - 1);
  return [base, base + step].flatMap((value) => subtract({ range: rangeOf(family, value, prefix + 1), port: target.port }, inside));
}

function overlaps(a: Target, b: Target): boolean {
  return a.port === b.port && rangesOverlap(a.range, b.range);
}

function covers(outer: Target, inner: Target): boolean {
  return outer.port === inner.port && rangeCovers(outer.range, inner.range);
}

function renderAdd({ range, port }: Target): SetChange {
  return { op: "add", set: "cut", range: range.text, port, lifeS: CUT_LIFE_S };
}

function renderDelete({ range, port }: Target): SetChange {
  return { op: "delete", set: "cut", range: range.text, port };
}
