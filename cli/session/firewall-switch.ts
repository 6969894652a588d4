import { classifyAddress } from "../../policy/address-class.ts";
import { parseAddress } from "../../policy/address.ts";
import { type Complaint, UsageError } from "../../policy/errors.ts";

/** Whether a start has the firewall, why, and what is said about it. */
export type NetworkDecision = { firewall: boolean; mode: "allowlist" | "full" | "none"; why: string; notices: string[] };

export type SwitchInput = {
  /** AGENTBOX_FIREWALL of the caller's environment. */
  variable: string | undefined;
  fullNetwork: boolean;
  /** What a `[network]` table wants and what decided so; undefined without one. */
  configured: { mode: NetworkDecision["mode"]; why: string } | undefined;
  /** `required = true` of the user's own file. */
  required: boolean;
  /** Whether the effective policy opens nothing at all; asked only where the firewall is on. */
  opensNothing: boolean;
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

const OPEN = "FIREWALL OFF, this box reaches everything that this machine reaches";

/**
 * Decides on the firewall: `--full-network` over AGENTBOX_FIREWALL over the configuration, and nothing turns it
 * off against `required`. An allowlist that opens nothing is a box without network.
 *
 * Errors: UsageError for a value that `checkSwitch` refuses, and for what `required` refuses.
 */
export function decideNetwork(input: SwitchInput): NetworkDecision {
  const complaint = checkSwitch(input.variable);
  if (complaint !== undefined) throw new UsageError(complaint);
  const wish = decideWish(input);
  if (input.required && wish.mode === "full" && wish.asked !== undefined) throw refuseOpen(wish.asked);
  if (wish.mode === "full" && !input.required) return { firewall: false, mode: "full", why: wish.why, notices: wish.notices };
  const mode = input.opensNothing || wish.mode === "none" ? "none" : "allowlist";
  const why = input.required && wish.mode === "full" ? "required = true in the user's own file" : wish.why;
  return { firewall: true, mode, why, notices: [...(wish.mode === "full" ? [] : wish.notices), ...describeNone(mode, wish.mode, why)] };
}

type Wish = {
  mode: NetworkDecision["mode"];
  why: string;
  /** What asked for an open network in so many words; undefined where nobody said anything. */
  asked?: string;
  notices: string[];
};

function decideWish({ variable, fullNetwork, configured }: SwitchInput): Wish {
  if (fullNetwork) {
    const over = variable === "1" ? "--full-network overrides AGENTBOX_FIREWALL=1" : "--full-network";
    return { mode: "full", why: "--full-network", asked: "--full-network", notices: [`${over}: ${OPEN}`] };
  }
  if (variable === "0") return { mode: "full", why: "AGENTBOX_FIREWALL=0", asked: "AGENTBOX_FIREWALL=0", notices: [`AGENTBOX_FIREWALL=0: ${OPEN}`] };
  if (variable === "1") return wishOn(configured);
  if (configured?.mode === "full") return { ...configured, asked: configured.why, notices: [`${configured.why}: ${OPEN}`] };
  if (configured !== undefined) return { ...configured, notices: [] };
  return { mode: "full", why: "nothing asks for the firewall", notices: [`${OPEN}; \`agentbox setup\` writes down what it may reach, AGENTBOX_FIREWALL=1 allows the default hosts only`] };
}

/** The variable turns on what the configuration leaves open, and opens nothing that it keeps closed. */
function wishOn(configured: SwitchInput["configured"]): Wish {
  if (configured?.mode === "none") return { ...configured, notices: [] };
  const notices = configured?.mode === "full" ? [`AGENTBOX_FIREWALL=1 turns the firewall on although ${configured.why}`] : [];
  return { mode: "allowlist", why: "AGENTBOX_FIREWALL=1", notices };
}

function describeNone(mode: NetworkDecision["mode"], wished: NetworkDecision["mode"], why: string): string[] {
  if (mode !== "none") return [];
  return [wished === "none" ? `${why}: this box has no network at all` : "the allowlist is empty: this box has no network at all"];
}

function refuseOpen(asked: string): UsageError {
  return new UsageError({ what: `${asked} asks for an open network, but the user's own configuration requires the firewall`, expected: "a start with the firewall on", fix: "leave it out, or take `required = true` out of ~/.agentbox/config.toml" });
}
