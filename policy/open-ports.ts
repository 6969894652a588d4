import type { Range } from "./address.ts";
import type { Host } from "./host-name.ts";
import type { Policy } from "./policy.ts";

/** The ports on which the policy lets this host through, ascending; empty for a host that it does not. */
export function openPorts(policy: Policy, host: Host): readonly number[] {
  const known = new Set(policy.rules.flatMap(({ ports }) => (ports === "any" ? [] : ports)));
  return [...known].filter((port) => policy.find(host, port)?.action === "allow").toSorted((a, b) => a - b);
}

/** The address blocks that the policy opens by literal entries, less what earlier rules deny; one element a port. */
export function openRanges(policy: Policy): readonly { range: Range; port: number }[] {
  return policy.rules.flatMap(({ match, action, ports }) => (match.kind === "range" && action === "allow" && ports !== "any" ? ports.map((port) => ({ range: match.range, port })) : []));
}
