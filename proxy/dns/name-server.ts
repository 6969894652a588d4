import { NAME_PROBES, PROBE_DETAIL, PROBE_TYPE } from "../../policy/probe.ts";
import { AnswerCache } from "./answer-cache.ts";
import type { DecisionLog, Tally } from "../log/decision-log.ts";
import { ageOf, type HeldAnswer } from "./held-answer.ts";
import type { LivePolicy } from "../live-policy.ts";
import { collectFacts, judgeName, type NameVerdict } from "./name-verdict.ts";
import { type Query, type ReadQuery, readQuery } from "./query.ts";
import { renderRefusal, renderReply, SERVER_FAILURE } from "./reply.ts";
import type { Resolver } from "./resolver.ts";
import { RCODE, readName, renderType, TYPE } from "./wire.ts";

/** Questions whose answer would be no record of the name: transfers, everything at once, and types of the protocol itself. */
const REFUSED_TYPES: ReadonlySet<number> = new Set([0, TYPE.OPT, 249, 250, TYPE.IXFR, TYPE.AXFR, TYPE.MAILB, TYPE.MAILA, TYPE.ANY]);
/** What is asked upstream. Everything else has no data here: HTTPS and SVCB because they would hide names (ECH), the rest because nothing needs it. */
const PASSED_TYPES: ReadonlySet<number> = new Set([TYPE.A, TYPE.NS, TYPE.CNAME, TYPE.SOA, TYPE.PTR, TYPE.MX, TYPE.TXT, TYPE.AAAA, TYPE.SRV, TYPE.SSHFP, TYPE.TLSA, TYPE.CAA]);

export type Reply = Buffer | undefined;

export type NameServerParts = { log: DecisionLog; cache: AnswerCache; resolver: Resolver };

/**
 * Answers DNS messages. A question that was answered before costs one look into the cache; a name that the
 * policy does not let through never goes further than this file.
 */
export class NameServer {
  private readonly log: DecisionLog;
  private readonly cache: AnswerCache;
  private readonly resolver: Resolver;
  private live: LivePolicy | undefined;

  constructor({ log, cache, resolver }: NameServerParts) {
    this.log = log;
    this.cache = cache;
    this.resolver = resolver;
  }

  /** Serves by this policy from now on. */
  replace(live: LivePolicy): void {
    this.live = live;
    this.cache.forgetRefusals();
    this.resolver.replace(live);
  }

  /** Answers one message, at once where nothing has to be asked; undefined is silence. `limit` bounds the bytes of the answer, undefined stands for what the client's UDP takes. */
  answer(message: Buffer, limit: number | undefined): Reply | Promise<Reply> {
    const read = readQuery(message);
    if (read.kind !== "query") return this.refuse(message, read);
    const { query } = read;
    const bytes = limit ?? query.udpLimit;
    const { live } = this;
    if (live === undefined || this.log.failing !== undefined) return renderReply(query, SERVER_FAILURE, bytes);
    const now = Date.now();
    const held = this.cache.find(query.key, live.epoch, now) ?? this.judge(query, live, now);
    if (!(held instanceof Promise)) return this.render(query, held, bytes, now);
    return held.then((found) => this.render(query, found, bytes, Date.now()));
  }

  /** Writes down that the answer was given, and gives it only then. */
  private render(query: Query, held: HeldAnswer | undefined, limit: number, now: number): Buffer {
    if (held === undefined) return renderReply(query, SERVER_FAILURE, limit);
    this.log.count(held.tally, now);
    if (this.log.failing !== undefined) return renderReply(query, SERVER_FAILURE, limit);
    return renderReply(query, held, limit, ageOf(held, now));
  }

  private judge(query: Query, live: LivePolicy, now: number): HeldAnswer | Promise<HeldAnswer | undefined> {
    const { name } = readName(query.message, 12);
    const type = renderType(query.type);
    const verdict = judgeName(live.box, name);
    const local = this.resolver.knows(name);
    if (verdict.action === "deny" && !(local && verdict.decision.reason === "not_allowed")) {
      return this.holdRefusal(query, { live, now, rcode: RCODE.nameError, tally: this.refusalTally(verdict, type) });
    }
    if (REFUSED_TYPES.has(query.type)) {
      const refused: NameVerdict = { action: "deny", decision: { ...verdict.decision, action: "deny", reason: "not_allowed" } };
      const tally = this.log.tally(`refused ${name}`, collectFacts({ verdict: refused, type, detail: `questions of the type ${type} are not answered` }));
      return this.holdRefusal(query, { live, now, rcode: RCODE.refused, tally });
    }
    if (!PASSED_TYPES.has(query.type)) {
      const tally = this.log.tally(`empty ${name} ${verdict.action}`, collectFacts({ verdict, type, detail: `records of the type ${type} are never passed on` }));
      return this.holdRefusal(query, { live, now, rcode: RCODE.noError, tally });
    }
    return this.resolver.resolve({ key: query.key, question: { name, type: query.type } });
  }

  private holdRefusal({ key }: Query, { live, now, rcode, tally }: { live: LivePolicy; now: number; rcode: number; tally: Tally }): HeldAnswer {
    const held: HeldAnswer = { rcode, answers: 0, records: "", born: now, freshUntil: Number.POSITIVE_INFINITY, epoch: live.epoch, tally, partial: false };
    this.cache.holdRefusal(key, held);
    return held;
  }

  private refusalTally(verdict: NameVerdict, type: string): Tally {
    const { host, reason } = verdict.decision;
    if (type === PROBE_TYPE && NAME_PROBES.includes(host)) return this.log.tally(`probe ${host}`, collectFacts({ verdict, type, detail: PROBE_DETAIL }));
    return this.log.tally(`${reason} ${host}`, collectFacts({ verdict, type }));
  }

  private refuse(message: Buffer, read: Exclude<ReadQuery, { kind: "query" }>): Reply {
    if (read.kind === "silence") return undefined;
    const { what } = read;
    const decision = { action: "deny", reason: "denied", host: '"(malformed question)"', port: undefined, rule: undefined, nearest: undefined, detail: what } as const;
    this.log.count(this.log.tally(`malformed ${what}`, collectFacts({ verdict: { action: "deny", decision }, type: null })), Date.now());
    return renderRefusal(message, read.refusal);
  }
}
