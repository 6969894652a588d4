/** Whatever is kept in `Slots`; the number is theirs. */
export type Slotted = { slot: number };

/**
 * A set of things that come and go all the time. A Set of the language makes a new table every few of them, and
 * V8 takes what stood in the old ones for alive until its next large collection: half of all memory that a
 * connection ever used.
 */
export class Slots<T extends Slotted> {
  private readonly items: T[] = [];

  get size(): number {
    return this.items.length;
  }

  add(item: T): void {
    item.slot = this.items.length;
    this.items.push(item);
  }

  /** Tells whether it was there. */
  delete(item: T): boolean {
    const { slot } = item;
    if (this.items[slot] !== item) return false;
    const last = this.items.pop();
    if (last !== undefined && last !== item) {
      this.items[slot] = last;
      last.slot = slot;
    }
    item.slot = -1;
    return true;
  }

  /** All of them as they are now. */
  list(): readonly T[] {
    return [...this.items];
  }
}
