import { decide } from "./decide.ts";
import type { Policy } from "./policy.ts";

/**
 * Names that exist everywhere (RFC 2606), so that only the box's resolver can say that they do not. A box asks
 * for their SOA records to prove its own walls, which nobody else in it does: that tells its questions
 * from an agent's. An agent that asks so hides no more than this refusal, and from summaries only.
 */
export const NAME_PROBES: readonly string[] = ["example.com", "example.net", "example.org"];
export const PROBE_TYPE = "SOA";

/** The first of the names that the policy does not let through, nor what `nameWebProbe` makes of it; undefined where there is none. */
export function chooseProbe(policy: Policy): string | undefined {
  return NAME_PROBES.find((name) => [name, nameWebProbe(name)].every((host) => decide(policy, { host }).action === "deny"));
}

/** The name that a box tells in a TLS hello to prove that its proxy reads it, which nobody else in it does. */
export function nameWebProbe(name: string): string {
  return `agentbox-probe.${name}`;
}

/** Documentation addresses (RFC 5737, RFC 3849): nobody's, so nobody is bothered should the wall be down. */
export const ADDRESS_PROBES = ["198.51.100.1", "2001:db8::1"] as const;

/** The `detail` of a decision about a name probe. */
export const PROBE_DETAIL = "asked by the box itself, to prove its walls";
