import type { Address } from "../../policy/address.ts";
import { classifyAddress } from "../../policy/address-class.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { decide } from "../../policy/decide.ts";
import type { Host } from "../../policy/host-name.ts";
import { isOpaque, openPorts } from "../../policy/open-ports.ts";

/** An address of a name and the moment at which its life in the kernel ends (ms of the keeper's own clock). */
export type Lease = { address: Address; until: number };

/** One element of a learned set; `direct` holds those beside that the name wall leaves alone. */
export type Opening = { set: "learned" | "direct"; address: Address; port: number; until: number };

const MIN_TTL_S = 60;
const GRACE_S = 30;
const MAX_LIFE_S = 86_400;
/** So many addresses are remembered. */
const MAX_ADDRESSES = 60_000;

/** The life of a learned address in seconds: max(TTL, 60) + 30, at most a day. */
export function lifeOf(ttlS: number): number {
  return Math.min(Math.max(ttlS, MIN_TTL_S) + GRACE_S, MAX_LIFE_S);
}

/** The ports on which the policy lets a name lead to an address; `named` are its open ones, where they are at hand. */
export function portsFor({ policy }: Pick<BoxPolicy, "policy">, name: string, address: Address, named = openPorts(policy, { kind: "name", name })): number[] {
  // What `decide` says then; a change of the policy asks for each of many thousands.
  if (!policy.deniesAddresses && classifyAddress(address).kind === "public") return [...named];
  const host: Host = { kind: "name", name };
  return named.filter((port) => decide(policy, { host, port, address }).action === "allow");
}

/** What of a box decides about the elements of its sets. */
type Enforced = Pick<BoxPolicy, "policy" | "enforcement">;

/** The elements that a name's address makes: on ports that tell no name, it is not the name wall's to judge. */
export function openingsFor(box: Enforced, name: string, { address, until }: Lease, named?: readonly number[]): Opening[] {
  return portsFor(box, name, address, named).flatMap((port): Opening[] => {
    const opening = { set: "learned" as const, address, port, until };
    return box.enforcement === "name" && isOpaque(box.policy, { kind: "name", name }, port) ? [opening, { ...opening, set: "direct" }] : [opening];
  });
}

/**
 * What the names of this box have led to. Addresses whose life has ended stay known, since a connection may
 * outlive it by days and has to be cut when its name is denied: nothing tells for sure that there is none. So the
 * table gets full.
 */
export class LearnedTable {
  private readonly names = new Map<string, Map<string, Lease>>();
  private readonly byAddress = new Map<string, Set<string>>();
  /** Names that lost an address without a cut. */
  private readonly lasting = new Set<string>();
  private addresses = 0;

  /** How many of these addresses are new for the name. */
  countNew(name: string, leases: readonly Lease[]): number {
    const known = this.names.get(name);
    return new Set(leases.map(({ address }) => address.text).filter((text) => known?.has(text) !== true)).size;
  }

  /** How many more addresses can be remembered. */
  get room(): number {
    return MAX_ADDRESSES - this.addresses;
  }

  /** Remembers the leases of a name; the longer life wins. */
  learn(name: string, leases: readonly Lease[]): void {
    const known = this.names.get(name) ?? new Map<string, Lease>();
    this.names.set(name, known);
    for (const lease of leases) {
      const { text } = lease.address;
      const before = known.get(text);
      if (before === undefined) {
        this.addresses += 1;
        this.byAddress.set(text, (this.byAddress.get(text) ?? new Set()).add(name));
      }
      if (before === undefined || before.until < lease.until) known.set(text, lease);
    }
  }

  /** Notes that what was begun with an address goes on although it is closed now: its names are never forgotten. */
  keep(address: string): void {
    for (const name of this.namesOf(address)) this.lasting.add(name);
  }

  /** Forgets the names that the policy denies: their connections were cut, and stay so until the name is learned anew. */
  forgetDenied({ policy }: Pick<BoxPolicy, "policy">): void {
    for (const [name, leases] of this.names) {
      if (this.lasting.has(name) || openPorts(policy, { kind: "name", name }).length > 0) continue;
      this.names.delete(name);
      this.addresses -= leases.size;
      for (const text of leases.keys()) {
        const names = this.byAddress.get(text);
        names?.delete(name);
        if (names?.size === 0) this.byAddress.delete(text);
      }
    }
  }

  /** The names that led to this address, for a reader who knows the address only. */
  namesOf(address: string): string[] {
    return [...(this.byAddress.get(address) ?? [])];
  }

  /** What is in the kernel now. */
  count(now: number): { names: number; addresses: number } {
    let names = 0;
    const addresses = new Set<string>();
    for (const leases of this.names.values()) {
      const alive = [...leases.values()].filter(({ until }) => until > now);
      if (alive.length > 0) names += 1;
      for (const { address } of alive) addresses.add(address.text);
    }
    return { names, addresses: addresses.size };
  }

  /** Everything that the policy allows of what was learned, by `keyOf`; each with the longest life of its names, over or not. */
  openings(policy: Enforced): Map<string, Opening> {
    const openings = new Map<string, Opening>();
    for (const [name, leases] of this.names) {
      const named = openPorts(policy.policy, { kind: "name", name });
      for (const lease of leases.values()) {
        for (const opening of openingsFor(policy, name, lease, named)) {
          const key = keyOf(opening.address.text, opening.port, opening.set);
          const before = openings.get(key);
          if (before === undefined || before.until < opening.until) openings.set(key, opening);
        }
      }
    }
    return openings;
  }

  /** What the policy allowed of what was learned and `kept`, which is another's `openings`, does not hold. */
  gone(policy: Enforced, kept: ReadonlyMap<string, Opening>): Opening[] {
    const gone: Opening[] = [];
    for (const [name, leases] of this.names) {
      const named = openPorts(policy.policy, { kind: "name", name });
      for (const lease of leases.values()) {
        // Nearly all of it is kept, and then it is no matter where the name may lead.
        if (named.every((port) => kept.has(keyOf(lease.address.text, port)))) continue;
        gone.push(...openingsFor(policy, name, lease, named).filter(({ address, port }) => !kept.has(keyOf(address.text, port))));
      }
    }
    return gone;
  }
}

/** One key for each element of the learned sets. */
export function keyOf(address: string, port: number, set: Opening["set"] = "learned"): string {
  return set === "learned" ? `${address} ${port}` : `${address} ${port} ${set}`;
}
