import { lookup as askSystem } from "node:dns";
import { type Address, parseAddress } from "../../policy/address.ts";
import type { Found, Lookup } from "../access/lookup.ts";

/** The system does not tell how long an answer holds. */
const FRESH_MS = 30_000;
/** A name that does not exist may be about to. */
const FAILED_FRESH_MS = 2000;
const ANSWER_LIMIT_MS = 10_000;
/** Names kept; the oldest goes first. */
const MAX_HELD = 10_000;
/** Names asked for at a time: the system answers a few at once, and the others wait. */
const MAX_ASKED = 256;

/** Asks the system where a name leads, as `dns.lookup` with `all`; for tests. */
export type AskSystem = (name: string, take: (error: Error | null, addresses: readonly string[]) => void) => void;

type Held = { found: Found; until: number };

/**
 * Looks names up as other programs of this machine do, in the order that the system gives. Questions for one
 * name share one way.
 */
export function lookupBySystem(ask: AskSystem = askWithDns): Lookup {
  const held = new Map<string, Held>();
  const asked = new Map<string, Promise<Found>>();

  const keep = (name: string, found: Found): Found => {
    const until = found.ok ? found.freshUntil : Date.now() + FAILED_FRESH_MS;
    held.delete(name);
    held.set(name, { found, until });
    const oldest = held.size > MAX_HELD ? held.keys().next().value : undefined;
    if (oldest !== undefined) held.delete(oldest);
    return found;
  };

  return (name) => {
    const known = held.get(name);
    if (known !== undefined && Date.now() < known.until) return known.found;
    const running = asked.get(name);
    if (running !== undefined) return running;
    if (asked.size >= MAX_ASKED) return { ok: false, why: "too many names are looked up at once" };
    const started = resolve(name, ask).then((found) => keep(name, found)).finally(() => asked.delete(name));
    asked.set(name, started);
    return started;
  };
}

function resolve(name: string, ask: AskSystem): Promise<Found> {
  const { promise, resolve: settle } = Promise.withResolvers<Found>();
  const timer = setTimeout(() => settle({ ok: false, why: "the system's resolver does not answer" }), ANSWER_LIMIT_MS);
  ask(name, (error, texts) => {
    clearTimeout(timer);
    if (error !== null) return settle({ ok: false, why: describe(error) });
    settle({ ok: true, addresses: texts.flatMap(readAddress), freshUntil: Date.now() + FRESH_MS });
  });
  return promise;
}

function askWithDns(name: string, take: (error: Error | null, addresses: readonly string[]) => void): void {
  askSystem(name, { all: true, order: "verbatim" }, (error, found) => take(error, error === null ? found.map(({ address }) => address) : []));
}

/** An address with a zone is one of this machine's links, and nothing that a name should lead to. */
function readAddress(text: string): readonly Address[] {
  const address = parseAddress(text);
  return address.ok ? [address.value] : [];
}

function describe(error: Error): string {
  const code = "code" in error ? String(error.code) : error.message;
  if (code === "ENOTFOUND") return "the name does not exist";
  return code === "EAI_AGAIN" ? "the system's resolver gives no answer now" : `the name cannot be looked up (${code})`;
}
