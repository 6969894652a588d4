import type { DecisionRecord } from "./decision-record.ts";
import { classifyAddress } from "./address-class.ts";
import { WILDCARD_PROBE } from "./effective-list.ts";
import { parseHost, renderHost, type Host } from "./host-name.ts";
import { isTelemetryHost } from "./telemetry-hosts.ts";

/** A host that a session asked for: the ports of the kernel's records, how often, and whether a rule allowed it. */
export type UsedHost = { host: Host; ports: Set<number>; count: number; allowed: boolean };

export type DecidedRecord = Extract<DecisionRecord, { kind: "decision" }>;

/**
 * Collects the hosts of the wanted records. A packet to an address that a name led to counts for the name, since
 * addresses change: for the one that was asked for last. Telemetry, dotless names and special-purpose addresses are left out.
 */
export function collectHosts(records: readonly DecisionRecord[], wanted: (record: DecidedRecord) => boolean): readonly UsedHost[] {
  const hosts = new Map<string, UsedHost>();
  const lastName = new Map<string, string>();
  for (const record of records) {
    if (record.kind !== "decision") continue;
    for (const address of record.addresses) lastName.set(address, record.host);
    if (!wanted(record)) continue;
    const host = parseHost(nameOf(record, lastName));
    if (!host.ok || !isWorthListing(host.value)) continue;
    const key = renderHost(host.value);
    const used = hosts.get(key) ?? { host: host.value, ports: new Set(), count: 0, allowed: false };
    used.count += record.count;
    if (record.port !== null) used.ports.add(record.port);
    if (record.action === "allow") used.allowed = true;
    hosts.set(key, used);
  }
  return [...hosts.values()];
}

/** The name that a packet was meant for; its address where no name led there. */
function nameOf({ protocol, host, detail }: DecidedRecord, lastName: ReadonlyMap<string, string>): string {
  if (protocol !== "address") return host;
  // The keeper knows it from answers that the log counts but does not repeat.
  return lastName.get(host) ?? /^an address of (?<name>[^\s,;]+)/.exec(detail ?? "")?.groups?.["name"] ?? host;
}

function isWorthListing(host: Host): boolean {
  if (host.kind === "address") return classifyAddress(host.address).kind === "public";
  const { name } = host;
  return name.includes(".") && !name.endsWith(".arpa") && !name.startsWith(`${WILDCARD_PROBE}.`) && !isTelemetryHost(name);
}
