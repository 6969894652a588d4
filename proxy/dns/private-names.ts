import type { Address } from "../../policy/address.ts";
import { decide } from "../../policy/decide.ts";
import { followChain, readAddress } from "./answer-chain.ts";
import type { Done } from "../keeper-link.ts";
import type { LivePolicy } from "../live-policy.ts";
import type { UpstreamPool } from "./upstream-pool.ts";
import { TYPE } from "./wire.ts";

export type PrivateNamesParts = { pool: UpstreamPool; pin: (name: string, addresses: readonly string[]) => Promise<Done> };

/**
 * The names that may lead to private addresses. Each is resolved once for a policy and then stands for
 * those addresses: a name whose owner changes his mind later leads nowhere new.
 */
export class PrivateNames {
  private readonly pool: UpstreamPool;
  private readonly pin: PrivateNamesParts["pin"];
  private pinned: ReadonlyMap<string, Promise<readonly Address[]>> = new Map();

  constructor({ pool, pin }: PrivateNamesParts) {
    this.pool = pool;
    this.pin = pin;
  }

  /** Resolves the names of a new policy and pins them at the keeper. */
  replace(live: LivePolicy): void {
    this.pinned = new Map(live.box.privateNames.map((name) => [name, this.resolve(live, name)]));
  }

  /** The addresses of a private name; undefined for a name that is none. Waits until they are pinned. */
  find(name: string): Promise<readonly Address[]> | undefined {
    return this.pinned.get(name);
  }

  private async resolve(live: LivePolicy, name: string): Promise<readonly Address[]> {
    const found = live.hosts.get(name) ?? (await this.ask(live, name));
    const addresses = found.filter((address) => decide(live.box.policy, { host: name, address }).action === "allow");
    const done = await this.pin(name, addresses.map(({ text }) => text));
    return done.ok ? addresses : [];
  }

  /** The engine knows its containers; whatever it does not know, the upstreams may. */
  private async ask({ engineResolver }: LivePolicy, name: string): Promise<readonly Address[]> {
    const questions = [TYPE.A, TYPE.AAAA].map((type) => ({ name, type }));
    const known = engineResolver === undefined ? [] : await Promise.all(questions.map((question) => this.pool.askEngine(question, engineResolver).then((asked) => read(asked, question))));
    if (known.flat().length > 0) return known.flat();
    return (await Promise.all(questions.map((question) => this.pool.ask(question).then((asked) => read(asked, question))))).flat();
  }
}

function read(asked: Awaited<ReturnType<UpstreamPool["ask"]>>, question: { name: string; type: number }): readonly Address[] {
  return asked.ok ? followChain(asked.response, question).records.map((record) => readAddress(record)) : [];
}
