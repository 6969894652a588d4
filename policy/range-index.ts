import { truncate, type Address, type Family, type Range } from "./address.ts";
import { addPorts, addToSlot, bestOf, NO_RULE, type Slot, type SlotRule, type Steps } from "./rule-slot.ts";

type PrefixTable = { prefix: number; slots: Map<bigint, Slot> };

/**
 * Finds the first matching rule for an address: one table for each prefix length in use, so a search
 * takes at most 33 (IPv4) or 129 (IPv6) steps, whatever the number of rules.
 */
export class RangeIndex {
  private readonly tables: Record<Family, PrefixTable[]> = { 4: [], 6: [] };

  /** Adds a rule; rules must be added in their order of evaluation. */
  add(range: Range, rule: SlotRule): void {
    const tables = this.tables[range.family];
    let table = tables.find(({ prefix }) => prefix === range.prefix);
    if (table === undefined) {
      table = { prefix: range.prefix, slots: new Map() };
      tables.push(table);
    }
    table.slots.set(range.base, addToSlot(table.slots.get(range.base), rule));
  }

  /** Returns the index of the first rule that matches the address on the port (see `LabelTree.find`), or `NO_RULE`. */
  find(address: Address, port: number | undefined, steps?: Steps): number {
    let best = NO_RULE;
    for (const { prefix, slots } of this.tables[address.family]) {
      if (steps !== undefined) steps.count += 1;
      best = bestOf(slots.get(truncate(address.family, address.value, prefix)), port, best);
    }
    return best;
  }

  /** Adds every port that a matching rule names. */
  collectPorts(address: Address, ports: Set<number>, steps?: Steps): void {
    for (const { prefix, slots } of this.tables[address.family]) {
      if (steps !== undefined) steps.count += 1;
      addPorts(slots.get(truncate(address.family, address.value, prefix)), ports);
    }
  }
}
