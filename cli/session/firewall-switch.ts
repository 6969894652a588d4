import { classifyAddress } from "../../policy/address-class.ts";
import { parseAddress } from "../../policy/address.ts";
import { type Complaint, UsageError } from "../../policy/errors.ts";

/** Whether a start has the firewall, and what is said about it. */
export type NetworkDecision = { firewall: boolean; mode: "allowlist" | "full" | "none"; notices: string[] };

export type SwitchInput = {
  /** AGENTBOX_FIREWALL of the caller's environment. */
  variable: string | undefined;
  fullNetwork: boolean;
  /** Number of entries of the effective allowlist. */
  entries: number;
};

/** Complains about a value of AGENTBOX_FIREWALL that is neither 1 nor 0: it may be meant as either. */
export function checkSwitch(variable: string | undefined): Complaint | undefined {
  if (variable === undefined || variable === "1" || variable === "0") return undefined;
  return { what: `AGENTBOX_FIREWALL is ${JSON.stringify(variable)}`, expected: "1 (firewall on) or 0 (firewall off)", fix: "set one of them, or unset the variable" };
}

/** Complains about resolvers that a box would look for in itself, where its firewall finds nobody to ask. */
export function checkResolvers(addresses: readonly string[]): Complaint[] {
  return addresses.flatMap((text) => {
    const address = parseAddress(text);
    if (!address.ok) return [];
    const answer = classifyAddress(address.value);
    if (answer.kind === "public" || !/^(?:loopback|this network|unspecified address)/.test(answer.name)) return [];
    return [{ what: `--dns ${text} is the box itself (${answer.name}), where no resolver runs`, expected: "the address of a resolver that the box can reach", fix: "name the resolver's own address, or leave --dns out" }];
  });
}

/** Decides on the firewall. Throws UsageError for a value that `checkSwitch` refuses. */
export function decideNetwork({ variable, fullNetwork, entries }: SwitchInput): NetworkDecision {
  const complaint = checkSwitch(variable);
  if (complaint !== undefined) throw new UsageError(complaint);
  if (fullNetwork) {
    const over = variable === "1" ? "--full-network overrides AGENTBOX_FIREWALL=1: " : "--full-network: ";
    return { firewall: false, mode: "full", notices: [`${over}FIREWALL OFF, this box reaches everything that this machine reaches`] };
  }
  if (variable === "0") return { firewall: false, mode: "full", notices: ["AGENTBOX_FIREWALL=0: FIREWALL OFF, this box reaches everything that this machine reaches"] };
  if (variable === undefined) {
    return { firewall: false, mode: "full", notices: ["FIREWALL OFF: this box reaches everything that this machine reaches; AGENTBOX_FIREWALL=1 turns it on"] };
  }
  if (entries === 0) return { firewall: true, mode: "none", notices: ["the allowlist is empty: this box has no network at all"] };
  return { firewall: true, mode: "allowlist", notices: [] };
}
