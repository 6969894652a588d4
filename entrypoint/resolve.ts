import { Resolver } from "node:dns/promises";
import pLimit from "p-limit";
import type { ResolverFiles } from "./resolver-files.ts";

/** The addresses of one name, v4 and v6 together. `failure` says why there are none, or why one family is missing. */
export type Resolution = { name: string; addresses: string[]; failure: string | null };

export type ResolveOptions = {
  files: ResolverFiles;
  /** Called after each name with the number of names that are done. */
  onProgress?: (done: number) => void;
  /** Time for the first try of a question; later tries wait longer. */
  timeoutMs?: number;
  tries?: number;
};

// Docker's embedded resolver drops questions beyond about 500 at once and then each costs a time-out (docs/performance.md).
const QUESTIONS_IN_FLIGHT = 200;
const CNAME_LIMIT = 8;

/**
 * Resolves every name, A and AAAA, all side by side with at most 200 questions in flight. Names of the
 * hosts file are answered from there, as the programs in the box will. Never throws for a name.
 */
export async function resolveNames(names: readonly string[], options: ResolveOptions): Promise<Resolution[]> {
  const { files, onProgress, timeoutMs = 1500, tries = 3 } = options;
  const resolver = new Resolver({ timeout: timeoutMs, tries });
  if (files.servers.length > 0) resolver.setServers(files.servers);
  const limit = pLimit(QUESTIONS_IN_FLIGHT);
  const ask: Ask = (question) => limit(() => question(resolver));
  let done = 0;
  return Promise.all(
    names.map(async (name) => {
      const known = files.hosts.get(name);
      const resolution = known === undefined ? await resolveName(name, ask) : { name, addresses: known, failure: null };
      done += 1;
      onProgress?.(done);
      return resolution;
    }),
  );
}

type Ask = <T>(question: (resolver: Resolver) => Promise<T>) => Promise<T>;

async function resolveName(name: string, ask: Ask): Promise<Resolution> {
  let target = name;
  for (let hops = 0; hops <= CNAME_LIMIT; hops += 1) {
    const current = target;
    const answers = await Promise.allSettled([
      ask((resolver) => resolver.resolve4(current)),
      ask((resolver) => resolver.resolve6(current)),
    ]);
    const addresses = [...new Set(answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])))];
    if (addresses.length > 0) return { name, addresses, failure: describeLoss(answers) };
    const next = await findAlias(current, answers, ask);
    if (next === undefined) return { name, addresses: [], failure: describeFailures(answers) };
    target = next;
  }
  return { name, addresses: [], failure: `more than ${CNAME_LIMIT} CNAME records in a row` };
}

/** Some resolvers answer with the CNAME alone; the chain is then followed question by question. */
async function findAlias(name: string, answers: readonly PromiseSettledResult<string[]>[], ask: Ask): Promise<string | undefined> {
  if (!answers.some((answer) => answer.status === "rejected" && codeOf(answer.reason) === "ENODATA")) return undefined;
  const aliases = await ask((resolver) => resolver.resolveCname(name)).catch(() => []);
  return aliases[0];
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOTFOUND: "the name does not exist (NXDOMAIN)",
  ENODATA: "the name has no address, or only special-purpose ones, which stay closed",
  ETIMEOUT: "the resolver did not answer in time",
  ECONNREFUSED: "the resolver refuses connections",
  ESERVFAIL: "the resolver failed (SERVFAIL)",
  EREFUSED: "the resolver refuses this name",
};

/** A family that has no record is normal; one whose question was not answered is worth a word. */
function describeLoss(answers: readonly PromiseSettledResult<string[]>[]): string | null {
  const lost = answers.filter((answer) => answer.status === "rejected" && !["ENODATA", "ENOTFOUND"].includes(codeOf(answer.reason)));
  return lost.length === 0 ? null : describeFailures(lost);
}

function describeFailures(answers: readonly PromiseSettledResult<string[]>[]): string {
  const codes = answers.flatMap((answer) => (answer.status === "rejected" ? [codeOf(answer.reason)] : []));
  const code = codes.find((candidate) => candidate !== "ENODATA") ?? "ENODATA";
  return FAILURES[code] ?? `the resolver answered ${code}`;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error);
}
