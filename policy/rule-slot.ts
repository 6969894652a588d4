/** A rule as the lookup sees it: its place in the order, its action, and its ports. */
export type SlotRule = { index: number; action: "allow" | "deny"; ports: readonly number[] | "any" };

/**
 * The rules of one pattern, reduced to the first for each port: a later one can never match. `open` is
 * for questions without a port: the first rule that allows some port or denies all of them.
 */
export type Slot = { any: number; byPort: Map<number, number> | undefined; open: number };

/** A counter that tests and the benchmark hand in; nothing is counted without one. */
export type Steps = { count: number };

/** Larger than every index, so that "the smaller index wins" needs no special case. */
export const NO_RULE = Number.MAX_SAFE_INTEGER;

/** Adds a rule to a slot, which is made when there is none. */
export function addToSlot(slot: Slot | undefined, { index, action, ports }: SlotRule): Slot {
  const target = slot ?? { any: NO_RULE, byPort: undefined, open: NO_RULE };
  if (action === "allow" || ports === "any") target.open = Math.min(target.open, index);
  if (ports === "any") {
    target.any = Math.min(target.any, index);
    return target;
  }
  target.byPort ??= new Map();
  for (const port of ports) target.byPort.set(port, Math.min(target.byPort.get(port) ?? NO_RULE, index));
  return target;
}

/** The smaller of `best` and the first rule of the slot that matches the port. */
export function bestOf(slot: Slot | undefined, port: number | undefined, best: number): number {
  if (slot === undefined) return best;
  if (port === undefined) return Math.min(best, slot.open);
  return Math.min(best, slot.any, slot.byPort?.get(port) ?? NO_RULE);
}

/** Adds every port that a rule of the slot names. */
export function addPorts(slot: Slot | undefined, ports: Set<number>): void {
  if (slot?.byPort === undefined) return;
  for (const port of slot.byPort.keys()) ports.add(port);
}
