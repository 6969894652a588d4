import type { BoxPolicy } from "../policy/box-policy.ts";
import { type EffectiveList, WILDCARD_PROBE } from "../policy/effective-list.ts";
import { ResolveError } from "../policy/errors.ts";
import type { Kernel } from "./kernel.ts";
import type { Log } from "./log.ts";
import type { Resolution } from "./resolve.ts";

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
export function describeLosses(resolutions: readonly Resolution[]): string[] {
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
  ];
}

/** Throws ResolveError naming every critical service that has no address that may be opened. */
export function requireCritical(list: Pick<EffectiveList, "critical">, resolutions: readonly Resolution[]): void {
  const complaints = list.critical.flatMap(({ name, port }) => {
    const resolution = resolutions.find((candidate) => candidate.name === name);
    if ((resolution?.addresses.length ?? 0) > 0) return [];
    return [
      {
        what: `the critical service ${name}:${port} does not resolve: ${resolution?.failure ?? "it was not asked for"}`,
        expected: "a public address",
        fix: "check the network and the resolver, or take the name out of the critical services (network.critical, or CRITICAL_SERVICES in allowlists/services.sh)",
      },
    ];
  });
  if (complaints.length > 0) throw new ResolveError(complaints);
}

/** `resolver`: whether the box has one that was asked for a foreign name. */
export function describeProof(critical: number, resolver: boolean): string {
  const services = critical === 0 ? "" : `${count(critical, "critical service answers", "critical services answer")}, `;
  return `${services}${resolver ? "a foreign name does not exist, " : ""}the canaries are refused`;
}

/** What is enforced, not what was asked for. */
export function describeReady(box: BoxPolicy | undefined, kernel: Kernel): string {
  if (box === undefined) return "firewall on: no network at all; verified";
  const families = kernel.ipv6 ? "IPv4 and IPv6" : "IPv4";
  const { list, names, report, enforcement } = box;
  const reach = `${count(list.entries.length, "entry", "entries")} (${count(names.length, "name", "names")}) may be reached by ${enforcement} over ${families}`;
  if (report) return `REPORT MODE: ${reach}; everything else that is public is let through and written down, nothing of it is refused; verified`;
  return `firewall on: ${reach}, everything else is refused; verified`;
}

/** `1 entry`, `2 entries`. */
export function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
