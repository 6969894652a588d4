import { type EffectiveList, WILDCARD_PROBE } from "../policy/effective-list.ts";
import { ResolveError } from "../policy/errors.ts";
import type { Kernel } from "./kernel.ts";
import type { BoxPolicy } from "./load-policy.ts";
import type { Log } from "./log.ts";
import type { Openings } from "./openings.ts";
import type { Resolution } from "./resolve.ts";
import type { Plan } from "../firewall/rule.ts";

// What a start tells its reader, in words.

const PROGRESS_EVENTS = 25;

/** Returns a callback that reports about every 25th part of `total`, and the end. */
export function countProgress(log: Log, total: number): (done: number) => void {
  const each = Math.ceil(total / PROGRESS_EVENTS);
  return (done) => {
    if (done % each === 0 || done === total) log({ event: "progress", step: "resolving", done, total });
  };
}

/** One sentence for each reason why allowed names stay closed, with the names. */
export function describeLosses(resolutions: readonly Resolution[], { refused }: Pick<Openings, "refused">): string[] {
  // A probe that does not exist only means that the zone has no wildcard record.
  const asked = resolutions.filter(({ name }) => !name.startsWith(`${WILDCARD_PROBE}.`));
  const lost = Map.groupBy(
    asked.filter(({ addresses, failure }) => addresses.length === 0 && failure !== null),
    ({ failure }) => failure,
  );
  const partly = asked.filter(({ addresses, failure }) => addresses.length > 0 && failure !== null);
  return [
    ...[...lost].map(([failure, names]) => `not reachable, ${failure}: ${names.map(({ name }) => name).join(", ")}`),
    ...partly.map(({ name, failure }) => `${name} may be missing addresses: ${failure}`),
    ...refused.map(({ name, address, kind }) => `${name} resolves to ${address} (${kind}), which stays closed; list the address itself to open it`),
  ];
}

/** Throws ResolveError naming every critical service that has no address that may be opened. */
export function requireCritical(list: Pick<EffectiveList, "critical">, { refused, reachable }: Openings, resolutions: readonly Resolution[]): void {
  const complaints = list.critical.flatMap(({ name, port }) => {
    if (reachable.has(name)) return [];
    const special = refused.find((candidate) => candidate.name === name);
    const failure = resolutions.find((candidate) => candidate.name === name)?.failure;
    const why = special === undefined ? `does not resolve: ${failure}` : `resolves only to special-purpose addresses (${special.address})`;
    return [
      {
        what: `the critical service ${name}:${port} ${why}`,
        expected: "a public address",
        fix: "check the network and the resolver, or take the name out of CRITICAL_SERVICES in allowlists/services.sh and run agentbox --rebuild",
      },
    ];
  });
  if (complaints.length > 0) throw new ResolveError(complaints);
}

export function describeSets(plan: Plan): string {
  const total = plan.sets.reduce((sum, { entries }) => sum + entries.length, 0);
  const rules = plan.chains[4].reduce((sum, chain) => sum + chain.rules.length, 0);
  return `${total} addresses and ports in ${plan.sets.length} sets, ${rules} rules a family`;
}

export function describeProof(critical: number): string {
  const services = critical === 0 ? "" : `${count(critical, "critical service answers", "critical services answer")}, `;
  return `${services}the canaries are refused`;
}

/** What is enforced, not what was asked for. */
export function describeReady({ list, names }: BoxPolicy, kernel: Kernel): string {
  if (list.entries.length === 0) return "firewall on: no network at all; verified";
  const families = kernel.ipv6 ? "IPv4 and IPv6" : "IPv4";
  return `firewall on: ${count(list.entries.length, "entry", "entries")} (${count(names.length, "name", "names")}) may be reached by address over ${families}, everything else is refused; verified`;
}

/** `1 entry`, `2 entries`. */
export function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
