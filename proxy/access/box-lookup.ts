import type { Address } from "../../policy/address.ts";
import { readAddress } from "../dns/answer-chain.ts";
import type { AnswerCache } from "../dns/answer-cache.ts";
import { type HeldAnswer, rereadAnswer } from "../dns/held-answer.ts";
import type { Resolver } from "../dns/resolver.ts";
import { encodeName, RCODE, TYPE } from "../dns/wire.ts";
import type { LivePolicy } from "../live-policy.ts";
import type { Found, Lookup } from "./lookup.ts";

export type BoxLookupParts = {
  resolver: Pick<Resolver, "resolve">;
  cache: Pick<AnswerCache, "find">;
  /** The policy in force: answers are judged by it, and count no longer than it. */
  live: () => Pick<LivePolicy, "epoch"> | undefined;
};

type Kind = typeof TYPE.A | typeof TYPE.AAAA;
type Kept = { epoch: number; found: Extract<Found, { ok: true }> };

/** How long the addresses of one family wait for those of the other (RFC 8305, 3). */
const GRACE_MS = 50;
/** Names whose addresses are kept decoded; beyond that all are forgotten and read again. */
const MAX_KEPT = 8192;

/**
 * Finds names by the box's own resolver: the same judgement, the same cache, and the addresses are in the
 * kernel's sets before anybody dials them. Both families are asked for side by side.
 */
export function lookupInBox({ resolver, cache, live }: BoxLookupParts): Lookup {
  const kept = new Map<string, Kept>();

  const keep = (name: string, found: Found, epoch: number): Found => {
    if (!found.ok) return found;
    if (kept.size >= MAX_KEPT) kept.clear();
    kept.set(name, { epoch, found });
    return found;
  };

  return (name) => {
    const policy = live();
    if (policy === undefined) return { ok: false, why: "there is no policy yet" };
    const { epoch } = policy;
    const now = Date.now();
    const known = kept.get(name);
    if (known !== undefined && known.epoch === epoch && now < known.found.freshUntil) return known.found;
    const ask = (type: Kind): HeldAnswer | Promise<HeldAnswer | undefined> => {
      const key = keyOf(name, type);
      return cache.find(key, epoch, now) ?? resolver.resolve({ key, question: { name, type } });
    };
    const [four, six] = [ask(TYPE.A), ask(TYPE.AAAA)];
    if (!(four instanceof Promise) && !(six instanceof Promise)) return keep(name, join(name, [four, six]), epoch);
    return gather(four, six).then((answers) => keep(name, join(name, answers), epoch));
  };
}

type Answers = readonly [HeldAnswer | undefined, HeldAnswer | undefined];

/** Waits for both, but not long for the second once the first has addresses. */
function gather(four: HeldAnswer | Promise<HeldAnswer | undefined>, six: HeldAnswer | Promise<HeldAnswer | undefined>): Promise<Answers> {
  const { promise, resolve } = Promise.withResolvers<Answers>();
  const answers: [HeldAnswer | undefined, HeldAnswer | undefined] = [undefined, undefined];
  let open = 2;
  let grace: NodeJS.Timeout | undefined;
  const finish = (): void => {
    clearTimeout(grace);
    resolve([...answers]);
  };
  const take = (at: 0 | 1) => (answer: HeldAnswer | undefined) => {
    answers[at] = answer;
    open -= 1;
    if (open === 0) finish();
    else if (answer !== undefined && answer.answers > 0) grace = setTimeout(finish, GRACE_MS);
  };
  void Promise.resolve(four).then(take(0));
  void Promise.resolve(six).then(take(1));
  return promise;
}

function join(name: string, answers: Answers): Found {
  const known = answers.filter((answer) => answer !== undefined);
  const [four, six] = answers;
  const addresses = interleave(decode(name, TYPE.A, four), decode(name, TYPE.AAAA, six));
  const freshUntil = Math.min(...known.map((answer) => answer.freshUntil));
  if (addresses.length > 0) return { ok: true, addresses, freshUntil };
  // The resolver judged the addresses already, and left out what the policy does not let through.
  const refused = known.find(({ tally }) => tally.facts.action === "deny")?.tally.facts;
  if (refused !== undefined) return { ok: false, why: "it leads to nothing that may be reached", refused };
  if (known.length < answers.length) return { ok: false, why: "the box's resolver has no answer now" };
  return { ok: false, why: known.some(({ rcode }) => rcode === RCODE.nameError) ? "the name does not exist" : "the name has no address" };
}

function decode(name: string, type: Kind, held: HeldAnswer | undefined): readonly Address[] {
  if (held === undefined || held.answers === 0) return [];
  return rereadAnswer(held, { name, type }, held.born).records.map((record) => readAddress(record));
}

/** One family may have no route, and only some addresses are tried: neither may be at the end of the other's. */
function interleave(first: readonly Address[], second: readonly Address[]): readonly Address[] {
  const mixed: Address[] = [];
  for (let at = 0; at < Math.max(first.length, second.length); at += 1) mixed.push(...first.slice(at, at + 1), ...second.slice(at, at + 1));
  return mixed;
}

/** The key of a question, as `readQuery` makes it: name and type as they are on the wire. */
function keyOf(name: string, type: Kind): string {
  return `${encodeName(name).toString("latin1")}${String.fromCharCode(type >> 8, type & 0xff)}`;
}
