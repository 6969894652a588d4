import type { Address } from "../../policy/address.ts";
import { decide } from "../../policy/decide.ts";
import { MAX_PIN_ADDRESSES } from "../../policy/keeper-message.ts";
import { followChain, readAddress } from "./answer-chain.ts";
import type { Done } from "../keeper-link.ts";
import type { LivePolicy } from "../live-policy.ts";
import type { UpstreamPool } from "./upstream-pool.ts";
import { TYPE } from "./wire.ts";

export type PrivateNamesParts = { pool: UpstreamPool; pin: (name: string, addresses: readonly string[]) => Promise<Done> };

/**
 * The names that may lead to private addresses. Each is resolved once in the life of a box and then stands for those
 * addresses: a name whose owner changes his mind later leads nowhere new.
 */
export class PrivateNames {
  private readonly pool: UpstreamPool;
  private readonly pin: PrivateNamesParts["pin"];
  private pinned: ReadonlyMap<string, Promise<readonly Address[]>> = new Map();
  /** What the names led to that this process has asked for, also those that no policy names any more. */
  private readonly asked = new Map<string, Promise<readonly Address[]>>();
  private version: number | undefined;

  constructor({ pool, pin }: PrivateNamesParts) {
    this.pool = pool;
    this.pin = pin;
  }

  /** Takes over what the names of a new policy lead to; those that nobody knows are resolved and pinned at the keeper. */
  replace(live: LivePolicy): void {
    const isAnother = live.version !== this.version;
    this.version = live.version;
    this.pinned = new Map(live.box.privateNames.map((name) => [name, this.settle(live, name, isAnother)]));
  }

  /** The addresses of a private name; undefined for a name that is none. Waits until they are pinned. */
  find(name: string): Promise<readonly Address[]> | undefined {
    return this.pinned.get(name);
  }

  private async settle(live: LivePolicy, name: string, isAnother: boolean): Promise<readonly Address[]> {
    const held = live.pins.get(name);
    if (held !== undefined) return held.filter((address) => mayLead(live, name, address));
    const addresses = await this.recall(live, name, isAnother);
    const done = await this.pin(name, addresses.map(({ text }) => text));
    return done.ok ? addresses.filter((address) => mayLead(live, name, address)) : [];
  }

  /** Another policy is a reason to ask for what led nowhere: the keeper says where it is none. */
  private recall(live: LivePolicy, name: string, isAnother: boolean): Promise<readonly Address[]> {
    const earlier = this.asked.get(name);
    const found = earlier === undefined ? this.resolve(live, name) : earlier.then((addresses) => (addresses.length === 0 && isAnother ? this.resolve(live, name) : addresses));
    this.asked.set(name, found);
    return found;
  }

  private async resolve(live: LivePolicy, name: string): Promise<readonly Address[]> {
    const found = live.hosts.get(name) ?? (await this.ask(live, name));
    return found.filter((address) => mayLead(live, name, address)).slice(0, MAX_PIN_ADDRESSES);
  }

  /** The engine knows its containers; whatever it does not know, the upstreams may. */
  private async ask({ engineResolver }: LivePolicy, name: string): Promise<readonly Address[]> {
    const questions = [TYPE.A, TYPE.AAAA].map((type) => ({ name, type }));
    const known = engineResolver === undefined ? [] : await Promise.all(questions.map((question) => this.pool.askEngine(question, engineResolver).then((asked) => read(asked, question))));
    if (known.flat().length > 0) return known.flat();
    return (await Promise.all(questions.map((question) => this.pool.ask(question).then((asked) => read(asked, question))))).flat();
  }
}

function mayLead({ box }: LivePolicy, name: string, address: Address): boolean {
  return decide(box.policy, { host: name, address }).action === "allow";
}

function read(asked: Awaited<ReturnType<UpstreamPool["ask"]>>, question: { name: string; type: number }): readonly Address[] {
  return asked.ok ? followChain(asked.response, question).records.map((record) => readAddress(record)) : [];
}
