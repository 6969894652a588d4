import type { Address } from "./address.ts";
import { classifyAddress } from "./address-class.ts";
import type { BoxPolicy } from "./box-policy.ts";
import { decide, type Decision } from "./decide.ts";
import { renderOrigin } from "./effective-list.ts";
import type { Host } from "./host-name.ts";
import { openPorts, openRanges } from "./open-ports.ts";
import { renderRule } from "./policy.ts";

type Judged = Pick<BoxPolicy, "policy" | "ssh">;

/** What opens an address on a port whatever name led there: a rule as text, and where it was written. */
export type Reach = { text: string; origins: string[] };

/** Finds what opens an address as such: the kernel knows addresses, and a block that is open is open to every name that leads into it. */
export function findReach({ policy, ssh }: Judged, address: Address, port: number): Reach | undefined {
  const { action, rule } = decide(policy, { host: { kind: "address", address }, port });
  if (action === "allow" && rule !== undefined) return { text: renderRule(rule), origins: rule.origins.map((origin) => renderOrigin(origin)) };
  return ssh === "any" && port === 22 && classifyAddress(address).kind === "public" ? { text: "ssh = any", origins: [] } : undefined;
}

/** A question about a host on a port, and how it was decided by name. */
type Reached = { host: Host; port: number | undefined; decision: Decision; addresses: readonly Address[] };

/** Tells what addresses open beyond what is decided by name: for the port in question where nobody asked where the name leads, else for all ports. */
export function noteReach({ policy, ssh }: Judged, { host, port, decision, addresses }: Reached): readonly string[] {
  // A name that is not answered leads nowhere.
  if (host.kind !== "name" || decide(policy, { host }).action !== "allow") return [];
  if (port === undefined) {
    const named = openPorts(policy, host);
    const further = new Set(addresses.flatMap((address) => openPorts(policy, { kind: "address", address })).filter((each) => !named.includes(each)));
    return further.size === 0 ? [] : [`by address port ${[...further].toSorted((a, b) => a - b).join(", ")} is open as well`];
  }
  if (decision.action === "allow" || addresses.length > 0) return [];
  if (ssh === "any" && port === 22) return [`ssh = any: port 22 is open wherever ${host.name} leads on the internet`];
  if (!openRanges(policy).some((open) => open.port === port)) return [];
  const rules = policy.rules.filter(({ match, action, ports }) => match.kind === "range" && action === "allow" && ports !== "any" && ports.includes(port));
  const labels = [...new Set(rules.flatMap(({ origins }) => origins.map(({ label }) => label)))];
  return [`port ${port} is open to the address blocks of ${labels.join(", ")}: it is reachable if ${host.name} leads there`];
}
