import { planSets } from "../../firewall/plan.ts";
import { parseAddress, singleRange } from "../../policy/address.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { decide } from "../../policy/decide.ts";
import { CutTable, type Target } from "./cut-table.ts";
import { type KernelSets, openKernelSets, type SetChange } from "./kernel-sets.ts";
import { keyOf, LearnedTable, type Lease, lifeOf, type Opening, openingsFor, portsFor } from "./learned-table.ts";
import { collectLiterals, type KnownNames } from "./openings.ts";
import { readEarlierEntries } from "./earlier-entries.ts";

type Learned = readonly { address: string; ttl: number }[];

/** More than any policy names; what a proxy that lies says beyond that is not kept. */
const MAX_PINS = 1000;
/** So many openings are held before those whose life is over are looked for. */
const MIN_SWEEP = 10_000;

export type KernelPolicyInput = {
  backend: "ipset" | "nft";
  /** The same as long as the box runs. */
  enforcement: BoxPolicy["enforcement"];
  hosts: KnownNames;
  /** Told when the kernel takes no more entries. */
  onFull: (detail: string) => void;
};

/** `close` lets the connections of what is taken out go on. */
type Replacement = { before: BoxPolicy; next: BoxPolicy; removed: "cut" | "close"; agreed: () => Promise<string[]> };

/** The policy as the kernel knows it: literal, learned and cut sets, and what they hold. Times are of the monotonic clock, in ms. */
export class KernelPolicy {
  /** A sentence while the kernel takes no entries. */
  trouble: string | undefined;
  private readonly input: KernelPolicyInput;
  private readonly sets: KernelSets;
  private readonly table = new LearnedTable();
  private readonly cuts = new CutTable();
  private readonly pins = new Map<string, readonly string[]>();
  private pinCount = 0;
  /** The elements of the learned sets, by `keyOf`. */
  private open = new Map<string, Opening>();
  private sweepAt = MIN_SWEEP;
  /** What the kernel may hold although it could not say so, until its program is back. */
  private doubtful: readonly Opening[] = [];
  private literals: readonly Target[] = [];

  constructor(input: KernelPolicyInput) {
    this.input = input;
    this.sets = openKernelSets(input.backend, () => void this.refill());
  }

  /** Begins with a first policy; what an earlier run in this namespace had cut would stand in its way. */
  async begin(box: BoxPolicy): Promise<string[]> {
    return [...(await this.sets.flushCut()), ...(await this.adopt(box))];
  }

  /** Puts the literals of a policy in force; returns what the kernel refused. */
  private adopt(box: BoxPolicy): Promise<string[]> {
    return this.swapLiterals(collectLiterals(box, this.input.hosts, this.pins));
  }

  /** Judges addresses that an allowed name has led to by the policy and opens them; the sentences say why not. */
  async learn(box: BoxPolicy, name: string, learned: Learned): Promise<string[]> {
    const allowed = decide(box.policy, { host: name });
    // In report mode the wall lets everything public through, so there is nothing to open.
    if (allowed.action !== "allow") return box.report && allowed.reason === "not_allowed" ? [] : [`${allowed.host} is not allowed`];
    const now = performance.now();
    const leases: Lease[] = [];
    const openings: Opening[] = [];
    for (const { address: text, ttl } of learned) {
      const address = parseAddress(text);
      if (!address.ok) return [address.complaint.what];
      const lease = { address: address.value, until: now + lifeOf(ttl) * 1000 };
      const opened = openingsFor(box, allowed.host, lease);
      if (opened.length === 0) return [`${allowed.host} may not lead to ${address.value.text}`];
      leases.push(lease);
      openings.push(...opened);
    }
    const errors = await this.openAll(openings, now);
    if (errors.length === 0) this.table.learn(allowed.host, leases);
    return errors;
  }

  /** Opens what a private name leads to, for as long as the policy names it. */
  async pin(box: BoxPolicy, name: string, addresses: readonly string[]): Promise<{ ok: boolean; detail: string }> {
    if (!box.privateNames.includes(name)) {
      // The policy that names it may be on its way into force; it counts then.
      if (box.private.every((entry) => entry.name !== name) && !this.keepPin(name, addresses)) return { ok: false, detail: "too many names are pinned" };
      return { ok: true, detail: "" };
    }
    const refused = addresses.filter((text) => {
      const address = parseAddress(text);
      return !address.ok || portsFor(box, name, address.value).length === 0;
    });
    if (refused.length > 0) return { ok: false, detail: `${name} may not lead to ${refused.join(", ")}` };
    if (!this.keepPin(name, addresses)) return { ok: false, detail: "too many names are pinned" };
    const errors = await this.adopt(box);
    return { ok: errors.length === 0, detail: errors.join("; ") };
  }

  /** Tells whether the proxy has said of every private name what it leads to. */
  pinned(box: BoxPolicy): boolean {
    return box.privateNames.every((name) => this.pins.has(name));
  }

  /**
   * Goes from one policy to the next: literals are swapped, learned addresses that are allowed no more are
   * taken out, and with `cut` their connections end. Everything is worked out before `agreed` is asked, which returns what
   * speaks against it. When the kernel refuses, the literals before come back.
   */
  async replace({ before, next, removed, agreed }: Replacement): Promise<string[]> {
    const now = performance.now();
    const pinned = this.pinCount;
    const literals = collectLiterals(next, this.input.hosts, this.pins);
    const is = this.table.openings(next);
    const closed = [...this.open].flatMap(([key, opening]) => (is.has(key) ? [] : [opening]));
    const old = this.literals;
    const gone = removed === "close" ? [] : distinct([...old.filter(({ range, port }) => !is.has(keyOf(range.text, port))), ...[...closed, ...this.table.gone(before, is)].map(toTarget)], literals);
    // A box may have learned many thousands: what stays is listed only where something is cut.
    const kept = gone.length + this.cuts.size === 0 ? [] : [...literals, ...[...is.values()].map(toTarget)];
    const objections = await agreed();
    const errors = objections.length > 0 ? objections : await this.swapLiterals(literals);
    if (errors.length > 0) return errors;
    const changes: SetChange[] = [
      ...closed.map(renderDelete),
      ...this.cuts.release(kept),
      ...this.cuts.add(gone, kept),
      ...[...is].filter(([key, { until }]) => until > now && !this.open.has(key)).map(([, opening]) => renderAdd(opening, now)),
    ];
    const failed = await this.sets.change(changes);
    if (failed.length > 0) {
      await this.swapLiterals(old);
      await this.refill();
      return failed;
    }
    this.open = new Map([...is].filter(([, { until }]) => until > now));
    return this.adoptLatePins(next, pinned);
  }

  /** Closes what an earlier run of the entrypoint in this namespace had learned and this one has not. */
  async forgetEarlierRuns(): Promise<string[]> {
    const earlier = await readEarlierEntries(this.input.backend, this.input.enforcement === "name" ? ["learned", "direct"] : ["learned"]);
    return this.sets.change(earlier.filter(({ set, range, port }) => !this.open.has(keyOf(range, port, set))).map((entry) => ({ ...entry, op: "delete" })));
  }

  namesOf(address: string): string[] {
    return this.table.namesOf(address);
  }

  count(): { names: number; addresses: number } {
    return this.table.count(performance.now());
  }

  private keepPin(name: string, addresses: readonly string[]): boolean {
    if (this.pins.size >= MAX_PINS && !this.pins.has(name)) return false;
    this.pins.set(name, addresses);
    this.pinCount += 1;
    return true;
  }

  /** Pins that came while a policy was on its way into force belong to it. */
  private async adoptLatePins(box: BoxPolicy, counted: number): Promise<string[]> {
    const seen = this.pinCount;
    if (seen === counted) return [];
    const errors = await this.adopt(box);
    return errors.length > 0 ? errors : this.adoptLatePins(box, seen);
  }

  private async openAll(openings: readonly Opening[], now: number): Promise<string[]> {
    // A life that ends a second later is not worth a word to the kernel.
    const longer = openings.filter((opening) => (this.open.get(keyOfOpening(opening))?.until ?? 0) < opening.until - 1000);
    const released = this.cuts.size === 0 ? [] : this.cuts.release(openings.map(toTarget));
    const errors = await this.sets.change([...longer.map((opening) => renderAdd(opening, now)), ...released]);
    if (errors.length > 0) {
      const full = errors.find((sentence) => /full/i.test(sentence));
      // Told once: whoever fills the set could fill the log with it.
      if (full !== undefined && this.trouble === undefined) this.input.onFull(full);
      this.trouble = `the kernel takes no more addresses: ${errors[0] ?? ""}`;
      await this.takeBack(longer);
      return errors;
    }
    this.trouble = undefined;
    for (const opening of longer) this.open.set(keyOfOpening(opening), opening);
    if (this.open.size > this.sweepAt) {
      this.open = new Map([...this.open].filter(([, { until }]) => until > now));
      this.sweepAt = Math.max(MIN_SWEEP, 2 * this.open.size);
    }
    return [];
  }

  /** Closes what was opened of an answer that could not be opened whole: no policy to come would know of it. */
  private async takeBack(openings: readonly Opening[]): Promise<void> {
    const isOpen = (opening: Opening): boolean => this.open.has(keyOfOpening(opening));
    const unknown = openings.filter((opening) => !isOpen(opening));
    const errors = await this.sets.change(unknown.map(renderDelete));
    if (errors.length > 0) this.doubtful = [...this.doubtful, ...unknown];
    // Meanwhile another name may have led there.
    await this.sets.change(unknown.filter(isOpen).map((opening) => renderAdd(opening, performance.now())));
  }

  private async swapLiterals(literals: readonly Target[]): Promise<string[]> {
    const literal = literals.map(({ range, port }) => ({ range: range.text, protocol: "tcp" as const, port }));
    const errors = await this.sets.replaceLiterals({ sets: planSets({ literal, ssh: "listed" }) });
    if (errors.length === 0) this.literals = literals;
    return errors;
  }

  /** Says everything again to a kernel whose state is in doubt; what is there already only keeps its life. */
  private async refill(): Promise<void> {
    const now = performance.now();
    this.open = new Map([...this.open].filter(([, { until }]) => until > now));
    const { doubtful } = this;
    this.doubtful = [];
    const errors = await this.sets.change([...doubtful.map(renderDelete), ...[...this.open.values()].map((opening) => renderAdd(opening, now))]);
    if (errors.length > 0) this.doubtful = [...doubtful, ...this.doubtful];
    else this.trouble = undefined;
  }
}

function keyOfOpening({ address, port, set }: Opening): string {
  return keyOf(address.text, port, set);
}

function renderDelete({ set, address, port }: Opening): SetChange {
  return { op: "delete", set, range: address.text, port };
}

function renderAdd({ set, address, port, until }: Opening, now: number): SetChange {
  return { op: "add", set, range: address.text, port, lifeS: Math.max(1, Math.ceil((until - now) / 1000)) };
}

function toTarget({ address, port }: Opening): Target {
  return { range: singleRange(address), port };
}

/** What is gone: targets that are not among those kept. */
function distinct(gone: readonly Target[], kept: readonly Target[]): Target[] {
  const same = new Set(kept.map(({ range, port }) => keyOf(range.text, port)));
  return [...new Map(gone.map((target) => [keyOf(target.range.text, target.port), target])).entries()].flatMap(([key, target]) => (same.has(key) ? [] : [target]));
}
