import type { KnownNames } from "./openings.ts";

/** More than any policy names; what a proxy that lies says beyond that is not kept. */
const MAX_PINS = 1000;

/**
 * What private names lead to. The first answer stands for the life of the box: whoever owns a name, or has taken
 * the proxy over, cannot move it to another private address later. An empty one may be followed by another
 * until the start is over, and after that once for each policy of the owner's.
 */
export class PinTable {
  /** Counts what was kept. */
  changes = 0;
  private readonly pins = new Map<string, readonly string[]>();
  private settled = false;

  /** Keeps what a name leads to; the sentence says why it stays as it was. */
  keep(name: string, addresses: readonly string[]): string | undefined {
    const held = this.pins.get(name);
    const fresh = [...new Set(addresses)].toSorted();
    if (held === undefined && this.pins.size >= MAX_PINS) return "too many names are pinned";
    if (held === undefined || (held.length === 0 && !this.settled)) {
      this.pins.set(name, fresh);
      this.changes += 1;
    } else if (held.join() !== fresh.join()) return `${name} was pinned ${held.length === 0 ? "when it led nowhere" : `to ${held.join(", ")}`}`;
    return undefined;
  }

  /** The start is over: what led nowhere stays so. */
  settle(): void {
    this.settled = true;
  }

  /** The owner has another policy: names that led nowhere may be asked for again. */
  forgetEmpty(): void {
    for (const [name, addresses] of this.pins) if (addresses.length === 0) this.pins.delete(name);
  }

  has(name: string): boolean {
    return this.pins.has(name);
  }

  get names(): KnownNames {
    return this.pins;
  }

  /** What the proxy need not ask for again. */
  describe(): Record<string, string[]> {
    return Object.fromEntries([...this.pins].filter(([, addresses]) => this.settled || addresses.length > 0).map(([name, addresses]) => [name, [...addresses]]));
  }
}
