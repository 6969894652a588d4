import type { Address } from "../../policy/address.ts";
import { addressRecord, type AnswerChain, followChain } from "./answer-chain.ts";
import { admitChain } from "./admission.ts";
import type { AnswerCache } from "./answer-cache.ts";
import type { DecisionLog } from "../log/decision-log.ts";
import { type HeldAnswer, rereadAnswer } from "./held-answer.ts";
import type { Done } from "../keeper-link.ts";
import type { LivePolicy } from "../live-policy.ts";
import { collectFacts, judgeName, type NameVerdict } from "./name-verdict.ts";
import type { PrivateNames } from "./private-names.ts";
import type { UpstreamPool } from "./upstream-pool.ts";
import type { Question } from "./upstream-question.ts";
import { RCODE, renderType } from "./wire.ts";

/** What an address is learned with: `ttl` in seconds. */
export type Learned = { address: string; ttl: number };

export type ResolverParts = {
  cache: AnswerCache;
  log: DecisionLog;
  pool: UpstreamPool;
  privateNames: PrivateNames;
  /** Opens the addresses of a name; the answer may leave only when it was done. */
  learn: (name: string, addresses: readonly Learned[]) => Promise<Done>;
};

/** The time to live of what does not come from a resolver, and of stale answers, in seconds (RFC 8767). */
const LOCAL_TTL_S = 60;
const STALE_TTL_S = 30;
/** Policies that may come into force during one question before it is given up. */
const MAX_POLICIES = 4;

type Flight = { key: string; question: Question };
/** Where an answer came from: `opened` needs no learning any more. */
type Found = { chain: AnswerChain; opened: boolean };

/** Finds the answers that need more than a look into the cache: asks, judges what comes, and has it opened. */
export class Resolver {
  private readonly parts: ResolverParts;
  private readonly flights = new Map<string, Promise<HeldAnswer | undefined>>();
  private live: LivePolicy | undefined;

  constructor(parts: ResolverParts) {
    this.parts = parts;
  }

  /** Judges by this policy from now on, also what is on its way. */
  replace(live: LivePolicy): void {
    this.live = live;
    this.parts.pool.replace(live.upstreams);
    this.parts.privateNames.replace(live);
  }

  /** Tells whether the box's hosts file has the name. */
  knows(name: string): boolean {
    return this.live?.hosts.has(name) === true;
  }

  /** Resolves a question that the policy lets through; identical questions share one way. Undefined is a failure, which is in the log. */
  resolve(flight: Flight): Promise<HeldAnswer | undefined> {
    const running = this.flights.get(flight.key);
    if (running !== undefined) return running;
    const started = this.run(flight).finally(() => this.flights.delete(flight.key));
    this.flights.set(flight.key, started);
    return started;
  }

  private async run({ key, question }: Flight): Promise<HeldAnswer | undefined> {
    let found: Found | undefined;
    for (let policies = 0; policies < MAX_POLICIES; policies += 1) {
      const { live } = this;
      if (live === undefined) return undefined;
      const verdict = judgeName(live.box, question.name);
      if (verdict.action === "deny" && !this.isLocal(live, verdict)) return undefined;
      found = (await this.findLocal(live, question, verdict)) ?? found ?? (await this.findOutside({ key, question }, verdict));
      if (found === undefined) return undefined;
      if (this.live !== live) continue;
      const held = await this.admit({ live, verdict, question, found });
      if (this.live !== live) continue;
      if (held !== undefined && held.freshUntil > held.born) this.parts.cache.hold(key, held);
      return held;
    }
    return undefined;
  }

  /** A name of the hosts file that no rule allows: the box reads the file itself, so it is answered, and nothing is opened. */
  private isLocal(live: LivePolicy, { decision }: NameVerdict): boolean {
    return decision.reason === "not_allowed" && live.hosts.has(decision.host);
  }

  private async findLocal(live: LivePolicy, { name, type }: Question, { action }: NameVerdict): Promise<Found | undefined> {
    const addresses = (await this.parts.privateNames.find(name)) ?? live.hosts.get(name);
    if (addresses === undefined) return undefined;
    const opened = this.parts.privateNames.find(name) !== undefined || action === "deny";
    return { chain: localChain(name, type, addresses), opened };
  }

  private async findOutside({ key, question }: Flight, verdict: NameVerdict): Promise<Found | undefined> {
    const { cache, pool } = this.parts;
    const now = Date.now();
    const old = cache.findOld(key, now);
    if (old !== undefined && !old.partial && now < old.freshUntil) return { chain: rereadAnswer(old, question, now), opened: false };
    // A client is not kept waiting for resolvers that did not answer others; these questions go on asking them.
    if (old !== undefined && pool.allFailing()) {
      void pool.ask(question).then((asked) => asked.ok && cache.drop(key));
      return { chain: rereadStale(old, question, now), opened: false };
    }
    const asked = await pool.ask(question);
    if (asked.ok) return { chain: followChain(asked.response, question), opened: false };
    if (old !== undefined) return { chain: rereadStale(old, question, now), opened: false };
    this.noteFailure(verdict, question, `no answer could be had: ${asked.why}`);
    return undefined;
  }

  private async admit({ live, verdict, question, found }: { live: LivePolicy; verdict: NameVerdict; question: Question; found: Found }): Promise<HeldAnswer | undefined> {
    const { log } = this.parts;
    const { held, toLearn } = admitChain({ live, verdict, question, chain: found.chain, log, isLocal: verdict.action === "deny" });
    if (found.opened || toLearn.length === 0) return held;
    const done = await this.parts.learn(question.name, toLearn);
    if (done.ok) return held;
    // Under a policy that is gone meanwhile the answer is judged again, and a failure of the old one means nothing.
    if (this.live === live) this.noteFailure({ ...verdict, action: "deny" }, question, `its addresses could not be opened: ${done.detail}`);
    return undefined;
  }

  private noteFailure(verdict: NameVerdict, { name, type }: Question, detail: string): void {
    const { log } = this.parts;
    log.count(log.tally(`failed ${verdict.action} ${name}`, collectFacts({ verdict, type: renderType(type), detail })), Date.now());
  }
}

function rereadStale(old: HeldAnswer, question: Question, now: number): AnswerChain {
  const { rcode, aliases, records } = rereadAnswer(old, question, now);
  const stale = (record: AnswerChain["records"][number]) => ({ ...record, ttl: STALE_TTL_S });
  return { rcode, aliases: aliases.map(stale), records: records.map(stale), ttl: STALE_TTL_S };
}

function localChain(name: string, type: number, addresses: readonly Address[]): AnswerChain {
  const records = addresses.map((address) => addressRecord(name, address, LOCAL_TTL_S)).filter((record) => record.type === type);
  return { rcode: RCODE.noError, aliases: [], records, ttl: LOCAL_TTL_S };
}
