import { planSets } from "../../firewall/plan.ts";
import { parseAddress } from "../../policy/address.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { decide } from "../../policy/decide.ts";
import { CutTable, type Target } from "./cut-table.ts";
import { readEarlierEntries } from "./earlier-entries.ts";
import { type KernelSets, openKernelSets } from "./kernel-sets.ts";
import { keyOf, LearnedTable, type Lease, lifeOf, type Opening, openingsFor, portsFor } from "./learned-table.ts";
import { collectLiterals, type KnownNames } from "./openings.ts";
import { OpenedSet, renderAdd, renderDelete, toTarget } from "./opened-set.ts";
import { PinTable } from "./pin-table.ts";

type Learned = readonly { address: string; ttl: number }[];
type Done = { ok: boolean; detail: string };

/** A full set is told of so often at most. */
const QUIET_MS = 60_000;

export type KernelPolicyInput = {
  backend: "ipset" | "nft";
  /** The same as long as the box runs. */
  enforcement: BoxPolicy["enforcement"];
  hosts: KnownNames;
  /** Told when no more addresses can be opened. */
  onFull: (detail: string) => void;
};

/** `close` lets the connections of what is taken out go on. */
type Replacement = { before: BoxPolicy; next: BoxPolicy; removed: "cut" | "close"; agreed: () => Promise<string[]> };
/** The literals of a policy, with the pins as they were by then. */
type Literals = { box: BoxPolicy; targets: readonly Target[]; pinned: number };
/** What a replacement comes to: `is` what is open then, `lost` what was allowed and is no more, `closed` and `opened` what changes in the kernel. */
type Transition = Pick<Replacement, "before" | "removed"> & { is: ReadonlyMap<string, Opening>; lost: Opening[]; closed: Opening[]; opened: Opening[]; literals: Literals; now: number };

/** The policy as the kernel knows it: literal, learned and cut sets, and what they hold. Times are of the monotonic clock, in ms. */
export class KernelPolicy {
  /** What private names lead to. */
  readonly pins = new PinTable();
  private readonly input: KernelPolicyInput;
  private readonly sets: KernelSets;
  private readonly table = new LearnedTable();
  private readonly cuts = new CutTable();
  private readonly opened: OpenedSet;
  /** New addresses that are being opened, and will be remembered then. */
  private reserved = 0;
  /** Whether there may be denied names to forget. */
  private mayForget = false;
  /** A sentence while no more addresses can be remembered. */
  private tableTrouble: string | undefined;
  private quietUntil = 0;
  /** The policy whose literals are in the kernel or, after a failure, shall be. */
  private box: BoxPolicy | undefined;
  private literals: readonly Target[] = [];
  private areLiteralsDoubtful = false;
  /** Changes of the literals come one after the other. */
  private turn: Promise<unknown> = Promise.resolve();

  constructor(input: KernelPolicyInput) {
    this.input = input;
    this.sets = openKernelSets(input.backend, () => void this.refill());
    this.opened = new OpenedSet({ sets: this.sets, cuts: this.cuts, onFull: (detail) => this.tellFull(detail) });
  }

  /** A sentence while no more addresses can be opened. */
  get trouble(): string | undefined {
    return this.opened.trouble ?? this.tableTrouble;
  }

  /** Begins with a first policy; what an earlier run in this namespace had cut would stand in its way. */
  async begin(box: BoxPolicy): Promise<string[]> {
    return [...(await this.sets.flushCut()), ...(await this.inTurn(() => this.adopt(this.prepare(box))))];
  }

  private prepare(box: BoxPolicy): Literals {
    return { box, targets: collectLiterals(box, this.input.hosts, this.pins.names), pinned: this.pins.changes };
  }

  /** Puts the literals of a policy in force; returns what the kernel refused. */
  private async adopt(prepared: Literals): Promise<string[]> {
    const { box, targets } = prepared.pinned === this.pins.changes ? prepared : this.prepare(prepared.box);
    const literal = targets.map(({ range, port }) => ({ range: range.text, protocol: "tcp" as const, port }));
    const errors = await this.sets.replaceLiterals({ sets: planSets({ literal, ssh: "listed" }) });
    this.box = box;
    this.areLiteralsDoubtful = errors.length > 0;
    if (errors.length === 0) this.literals = targets;
    return errors;
  }

  /** Judges addresses that an allowed name has led to by the policy and opens them; the sentences say why not. */
  async learn(box: BoxPolicy, name: string, learned: Learned): Promise<string[]> {
    const allowed = decide(box.policy, { host: name });
    // In report mode the wall lets everything public through, so there is nothing to open.
    if (allowed.action !== "allow") return box.report && allowed.reason === "not_allowed" ? [] : [`${allowed.host} is not allowed`];
    if (box.privateNames.includes(allowed.host)) return [`${allowed.host} leads where it was pinned to and nowhere else`];
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
    const fresh = this.table.countNew(allowed.host, leases);
    if (fresh > 0 && !this.hasRoom(box, fresh)) return [this.refuseToLearn()];
    this.reserved += fresh;
    try {
      const errors = await this.opened.open(openings, now);
      if (errors.length === 0) this.table.learn(allowed.host, leases);
      return errors;
    } finally {
      this.reserved -= fresh;
    }
  }

  /** Opens what a private name of one of these policies leads to, for as long as one names it. */
  async pin(policies: readonly BoxPolicy[], name: string, addresses: readonly string[]): Promise<Done> {
    const naming = policies.filter(({ privateNames }) => privateNames.includes(name));
    if (naming.length === 0) return { ok: false, detail: `${name} is no private name of the policy` };
    const canonical: string[] = [];
    for (const text of addresses) {
      const address = parseAddress(text);
      if (!address.ok || naming.every((box) => portsFor(box, name, address.value).length === 0)) return { ok: false, detail: `${name} may not lead to ${text}` };
      canonical.push(address.value.text);
    }
    const kept = this.pins.keep(name, canonical);
    if (kept !== undefined) return { ok: false, detail: kept };
    // By whatever policy is in force when its turn comes; one that is on its way there takes the pin with it.
    const errors = await this.inTurn(async () => (this.box?.privateNames.includes(name) === true ? this.adopt(this.prepare(this.box)) : []));
    return { ok: errors.length === 0, detail: errors.join("; ") };
  }

  /** Tells whether the proxy has said of every private name what it leads to. */
  pinned(box: BoxPolicy): boolean {
    return box.privateNames.every((name) => this.pins.has(name));
  }

  /**
   * Goes from one policy to the next: literals are swapped, learned addresses that are allowed no more are
   * taken out, and with `cut` their connections end. Everything is worked out before `agreed` is asked, which returns what
   * speaks against it. When the kernel refuses, what was before comes back.
   */
  async replace({ before, next, removed, agreed }: Replacement): Promise<string[]> {
    const now = performance.now();
    const is = this.table.openings(next);
    const lost = this.table.gone(before, is);
    const compared = this.opened.compare(is, now);
    const literals = this.prepare(next);
    const objections = await agreed();
    if (objections.length > 0) return objections;
    const failed = await this.inTurn(() => this.goOver({ before, removed, is, lost, ...compared, literals, now }));
    if (failed.length > 0) return failed;
    this.opened.become(is, now);
    if (removed === "close") for (const { address } of lost) this.table.keep(address.text);
    this.mayForget = true;
    if (this.tableTrouble !== undefined) this.hasRoom(next, 1);
    return [];
  }

  private async goOver({ before, removed, is, lost, closed, opened, literals, now }: Transition): Promise<string[]> {
    const cut = this.cuts.targets;
    const old = this.literals;
    const errors = await this.adopt(literals);
    if (errors.length === 0) {
      const gone = removed === "close" ? [] : distinct([...old.filter(({ range, port }) => !is.has(keyOf(range.text, port))), ...[...closed, ...lost].map(toTarget)], this.literals);
      // A box may have learned many thousands: what stays is listed only where something is cut.
      const kept = gone.length + this.cuts.size === 0 ? [] : [...this.literals, ...[...is.values()].map(toTarget)];
      const changes = [...closed.map(renderDelete), ...this.cuts.release(kept), ...this.cuts.add(gone, kept), ...opened.map((opening) => renderAdd(opening, now))];
      errors.push(...(await this.sets.change(changes)));
    }
    if (errors.length === 0) return [];
    await this.adopt(this.prepare(before));
    await this.opened.refill(this.cuts.restore(cut));
    return errors;
  }

  /** The start is over: closes what an earlier run of the entrypoint in this namespace had learned and this one has not. */
  async settle(): Promise<string[]> {
    this.pins.settle();
    const earlier = await readEarlierEntries(this.input.backend, this.input.enforcement === "name" ? ["learned", "direct"] : ["learned"]);
    return this.sets.change(earlier.filter(({ set, range, port }) => !this.opened.has(keyOf(range, port, set))).map((entry) => ({ ...entry, op: "delete" })));
  }

  namesOf(address: string): string[] {
    return this.table.namesOf(address);
  }

  count(): { names: number; addresses: number } {
    return this.table.count(performance.now());
  }

  private hasRoom(box: BoxPolicy, count: number): boolean {
    if (this.table.room - this.reserved < count && this.mayForget) {
      this.table.forgetDenied(box);
      this.mayForget = false;
    }
    const hasRoom = this.table.room - this.reserved >= count;
    if (hasRoom) this.tableTrouble = undefined;
    return hasRoom;
  }

  private refuseToLearn(): string {
    const sentence = "the keeper's table of addresses is full: it forgets none, since a deny has to end their connections; deny names that are not needed, or start the box again";
    if (this.tableTrouble === undefined) this.tellFull(sentence);
    this.tableTrouble = sentence;
    return sentence;
  }

  /** Whoever fills a set could fill the log with it. */
  private tellFull(detail: string): void {
    const now = performance.now();
    if (now < this.quietUntil) return;
    this.quietUntil = now + QUIET_MS;
    this.input.onFull(detail);
  }

  /** The program that writes the sets is back. */
  private async refill(): Promise<void> {
    await this.opened.refill();
    await this.inTurn(async () => (this.box !== undefined && this.areLiteralsDoubtful ? this.adopt(this.prepare(this.box)) : []));
  }

  private inTurn<T>(action: () => Promise<T>): Promise<T> {
    const run = this.turn.then(action);
    this.turn = run.catch(() => undefined);
    return run;
  }
}

/** What is gone: targets that are not among those kept. */
function distinct(gone: readonly Target[], kept: readonly Target[]): Target[] {
  const same = new Set(kept.map(({ range, port }) => keyOf(range.text, port)));
  return [...new Map(gone.map((target) => [keyOf(target.range.text, target.port), target])).entries()].flatMap(([key, target]) => (same.has(key) ? [] : [target]));
}
