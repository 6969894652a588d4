import { singleRange } from "../../policy/address.ts";
import type { CutTable, Target } from "./cut-table.ts";
import type { KernelSets, SetChange } from "./kernel-sets.ts";
import { keyOf, type Opening } from "./learned-table.ts";
import { saysFull } from "./set-dialect.ts";

/** So many openings are held before those whose life is over are looked for. */
const MIN_SWEEP = 10_000;

export type OpenedSetInput = {
  sets: KernelSets;
  cuts: CutTable;
  /** Told when the kernel takes no more entries. */
  onFull: (detail: string) => void;
};

/** The learned sets as the kernel has them. Times are of the monotonic clock, in ms. */
export class OpenedSet {
  /** A sentence while the kernel takes no entries. */
  trouble: string | undefined;
  private readonly input: OpenedSetInput;
  /** The elements, by `keyOf`. */
  private held = new Map<string, Opening>();
  private sweepAt = MIN_SWEEP;
  /** What is taken out again where the kernel could not say that it did, when its program is back. */
  private doubtful: readonly SetChange[] = [];

  constructor(input: OpenedSetInput) {
    this.input = input;
  }

  has(key: string): boolean {
    return this.held.has(key);
  }

  /** Opens all of an answer or nothing of it; the sentences say why not. */
  async open(openings: readonly Opening[], now: number): Promise<string[]> {
    const { sets, cuts, onFull } = this.input;
    // A life that ends a second later is not worth a word to the kernel.
    const longer = openings.filter((opening) => (this.held.get(keyOfOpening(opening))?.until ?? 0) < opening.until - 1000).toSorted(compareSets);
    const { errors, taken } = await sets.addAll(longer.map((opening) => renderAdd(opening, now)));
    const released = errors.length === 0 && cuts.size > 0 ? cuts.release(openings.map(toTarget)) : [];
    errors.push(...(await sets.change(released)));
    if (errors.length > 0) {
      const full = errors.find(saysFull);
      if (full !== undefined && this.trouble === undefined) onFull(full);
      this.trouble = `the kernel takes no more addresses: ${errors[0] ?? ""}`;
      this.doubtful = [...this.doubtful, ...released.filter(({ op }) => op === "delete")];
      await this.takeBack(longer.slice(0, taken));
      return errors;
    }
    // What was open already says nothing about room for more.
    if (longer.some((opening) => !this.held.has(keyOfOpening(opening)))) this.trouble = undefined;
    for (const opening of longer) this.held.set(keyOfOpening(opening), opening);
    this.sweep(now);
    return [];
  }

  /** What has to go and to come so that these are the only elements. */
  compare(openings: ReadonlyMap<string, Opening>, now: number): { closed: Opening[]; opened: Opening[] } {
    return {
      closed: [...this.held].flatMap(([key, opening]) => (openings.has(key) ? [] : [opening])),
      opened: [...openings].flatMap(([key, opening]) => (opening.until <= now || this.held.has(key) ? [] : [opening])),
    };
  }

  /** The kernel has these now. */
  become(openings: ReadonlyMap<string, Opening>, now: number): void {
    this.held = new Map([...openings].filter(([, { until }]) => until > now));
    this.trouble = undefined;
  }

  /** Says everything again to a kernel whose state is in doubt, and first what it shall lack; what is there already only keeps its life. */
  async refill(further: readonly SetChange[] = []): Promise<void> {
    const { sets, cuts } = this.input;
    const now = performance.now();
    this.dropEnded(now);
    const doubtful = [...this.doubtful, ...further.filter(({ op }) => op === "delete")];
    this.doubtful = [];
    const errors = await sets.change([...doubtful, ...[...this.held.values()].map((opening) => renderAdd(opening, now)), ...cuts.restore(cuts.targets)]);
    if (errors.length > 0) this.doubtful = [...doubtful, ...this.doubtful];
    else this.trouble = undefined;
  }

  /** Closes what was opened of an answer that could not be opened whole: no policy to come would know of it. */
  private async takeBack(openings: readonly Opening[]): Promise<void> {
    const { sets } = this.input;
    const unknown = openings.filter((opening) => !this.held.has(keyOfOpening(opening)));
    const deletes = unknown.map(renderDelete);
    const errors = await sets.change(deletes);
    if (errors.length > 0) this.doubtful = [...this.doubtful, ...deletes];
    // Meanwhile another name may have led there.
    const open = unknown.flatMap((opening) => this.held.get(keyOfOpening(opening)) ?? []);
    await sets.change(open.map((opening) => renderAdd(opening, performance.now())));
  }

  private sweep(now: number): void {
    if (this.held.size <= this.sweepAt) return;
    this.dropEnded(now);
    this.sweepAt = Math.max(MIN_SWEEP, 2 * this.held.size);
  }

  private dropEnded(now: number): void {
    this.held = new Map([...this.held].filter(([, { until }]) => until > now));
  }
}

/** Elements of one set after the other, which nft takes together. */
function compareSets(a: Opening, b: Opening): number {
  return Number(a.set === "direct") - Number(b.set === "direct");
}

export function toTarget({ address, port }: Opening): Target {
  return { range: singleRange(address), port };
}

function keyOfOpening({ address, port, set }: Opening): string {
  return keyOf(address.text, port, set);
}

export function renderDelete({ set, address, port }: Opening): SetChange {
  return { op: "delete", set, range: address.text, port };
}

export function renderAdd({ set, address, port, until }: Opening, now: number): SetChange {
  return { op: "add", set, range: address.text, port, lifeS: Math.max(1, Math.ceil((until - now) / 1000)) };
}
