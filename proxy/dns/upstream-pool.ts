import type { Address } from "../../policy/address.ts";
import { type Exchanged, exchange, exchangeStream, type Upstream } from "./upstream-exchange.ts";
import type { Question } from "./upstream-question.ts";
import { readResponse, type Response } from "./response.ts";
import { TurnQueue } from "./turn-queue.ts";
import { RCODE, WireError } from "./wire.ts";

/** What came of a question: an answer, or one sentence why there is none. */
export type Asked = { ok: true; response: Response } | { ok: false; why: string };

/** `askedAt` is of the monotonic clock, in ms. */
type Known = Upstream & { failures: number; askedAt: number };
/** What became of the resolvers: `failing` lists those that did not answer twice in a row. */
export type UpstreamNews = { event: "upstream-failing" | "upstream-back"; address: string; detail: string };

/** Limits of the attempts, in order. A client waits about five seconds before it asks again. */
const ATTEMPTS_MS = [800, 1200, 2000];
const FAILING_AFTER = 2;
/** How often one that fails is asked beside another that answers, to see whether it is back. */
const RECHECK_MS = 5000;
const IN_FLIGHT = 200;
const WAITING = 2000;

/** The resolvers that this one asks: which of them answer, and how many questions are on their way. */
export class UpstreamPool {
  private readonly port: number;
  private readonly onNews: (news: UpstreamNews) => void;
  private readonly turns = new TurnQueue(IN_FLIGHT, WAITING);
  private known: Known[] = [];

  constructor(port: number, onNews: (news: UpstreamNews) => void) {
    this.port = port;
    this.onNews = onNews;
  }

  /** Takes a new list, in order of preference; what is known of those that stay is kept. */
  replace(addresses: readonly Address[]): void {
    this.known = addresses.map((address) => this.known.find((old) => old.address.text === address.text) ?? { address, port: this.port, failures: 0, askedAt: 0 });
  }

  /** The resolvers that do not answer at present. */
  failing(): readonly string[] {
    return this.known.filter(isFailing).map(({ address }) => address.text);
  }

  /** Tells whether no resolver answers at present. */
  allFailing(): boolean {
    return this.known.every(isFailing);
  }

  /** Asks the resolvers in turn, those that answer first, until one of them does. */
  ask(question: Question): Promise<Asked> {
    return this.inTurn(() => this.askInOrder(question));
  }

  /**
   * Asks the engine's own resolver, by TCP: it listens in the box's own namespace, where a program of the
   * box could send datagrams in its name.
   */
  askEngine(question: Question, address: Address): Promise<Asked> {
    return this.inTurn(async () => read(await exchangeStream(question, { address, port: this.port }, 2000)));
  }

  private async inTurn(work: () => Promise<Asked>): Promise<Asked> {
    return (await this.turns.run(work)) ?? { ok: false, why: "too many questions are waiting" };
  }

  private async askInOrder(question: Question): Promise<Asked> {
    const order = this.known.toSorted((a, b) => Number(isFailing(a)) - Number(isFailing(b)));
    this.recheck(question, order);
    const whys: string[] = [];
    const attempts = Math.max(ATTEMPTS_MS.length, order.length);
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const upstream = order[attempt % order.length];
      if (upstream === undefined) break;
      const exchanged = await this.exchange(question, upstream, ATTEMPTS_MS[attempt] ?? 800);
      const asked = read(exchanged);
      if (asked.ok) return asked;
      whys.push(`${upstream.address.text}: ${asked.why}`);
    }
    return { ok: false, why: [...new Set(whys)].join("; ") || "no upstream resolver is known" };
  }

  /** Nobody waits for this one: without it a preferred resolver would stay failing for as long as another answers. */
  private recheck(question: Question, [first]: readonly Known[]): void {
    const due = this.known.find((upstream) => upstream !== first && isFailing(upstream) && performance.now() - upstream.askedAt >= RECHECK_MS);
    if (due !== undefined) void this.exchange(question, due, 800);
  }

  private async exchange(question: Question, upstream: Known, timeoutMs: number): Promise<Exchanged> {
    upstream.askedAt = performance.now();
    const exchanged = await exchange(question, upstream, timeoutMs);
    this.note(upstream, exchanged);
    return exchanged;
  }

  private note(upstream: Known, exchanged: Exchanged): void {
    const before = isFailing(upstream);
    upstream.failures = exchanged.ok ? 0 : upstream.failures + 1;
    if (before === isFailing(upstream)) return;
    const address = upstream.address.text;
    if (exchanged.ok) this.onNews({ event: "upstream-back", address, detail: `the upstream resolver ${address} answers again` });
    else this.onNews({ event: "upstream-failing", address, detail: `the upstream resolver ${address} does not answer: ${exchanged.why}` });
  }
}

function isFailing({ failures }: Known): boolean {
  return failures >= FAILING_AFTER;
}

function read(exchanged: Exchanged): Asked {
  if (!exchanged.ok) return exchanged;
  try {
    const response = readResponse(exchanged.message, exchanged.questionEnd);
    if (response.rcode === RCODE.noError || response.rcode === RCODE.nameError) return { ok: true, response };
    return { ok: false, why: `it answers with the code ${response.rcode}` };
  } catch (error) {
    if (error instanceof WireError) return { ok: false, why: `its answer is malformed: ${error.message}` };
    throw error;
  }
}
