import { rangeContains, type Address } from "./address.ts";
import { classifyAddress, isPinnable } from "./address-class.ts";
import { renderComplaint } from "./errors.ts";
import { parseHost, renderHost, type Host } from "./host-name.ts";
import { openPorts } from "./open-ports.ts";
import { quote } from "./parsed.ts";
import type { Action, Policy, PolicyRule } from "./policy.ts";
import type { Reason } from "./reason.ts";
import type { Steps } from "./rule-slot.ts";
import { judgeUse, type Use } from "./use.ts";

export type { Reason } from "./reason.ts";

/**
 * What is asked. `host` is text as it came from outside, or already canonical. Without a port the
 * question is whether the name may be resolved at all. `address` is where the name really leads, `use` what
 * the connection is for.
 */
export type Question = { host: string | Host; port?: number | undefined; address?: Address | undefined; use?: Use | undefined };

/** The answer, with everything that a log line or an explanation shows. */
export type Decision = {
  action: Action;
  reason: Reason;
  /** Canonical text; for a malformed host the given text, quoted. */
  host: string;
  port: number | undefined;
  /** The rule that decided; none when nothing matched or the host is malformed. */
  rule: PolicyRule | undefined;
  /** For `not_allowed`: a rule that allows the same host on other ports. */
  nearest: PolicyRule | undefined;
  /** One sentence more: what is malformed, or what the address is. */
  detail: string | undefined;
};

/**
 * Decides one question, in this order:
 *
 * 1. A malformed host or port is `denied`.
 * 2. The first rule that matches host and port (blocks, ordered rules, list, base) decides: a deny rule
 *    is `denied`, no rule is `not_allowed`. Patterns match names only, ranges match literals only.
 * 3. Where the use is known: other names for the same place are `host_mismatch`, and what the methods do
 *    not permit has its own reason (`judgeUse`).
 * 4. Where the name's address is known: a deny rule for that address ahead of the rule of step 2 is `denied`.
 * 5. A special-purpose address is `not_allowed_local`, unless it lies in `allowPrivate`, is itself listed,
 *    or the name is a private host on this port. An address that was asked for literally was listed in step 2.
 * 6. Otherwise `allowed`.
 *
 * Without a port the answer is `allowed` where it is so on some port, else that of the first port in question.
 */
export function decide(policy: Policy, { host: given, port, address, use }: Question, steps?: Steps): Decision {
  if (typeof given !== "string") return decideHost({ policy, host: given, port, address, use }, steps);
  const host = parseHost(given);
  if (!host.ok) return malformed(quote(given), port, renderComplaint(host.complaint));
  return decideHost({ policy, host: host.value, port, address, use }, steps);
}

type HostQuestion = { policy: Policy; host: Host; port: number | undefined; address: Address | undefined; use?: Use | undefined };

function decideHost({ policy, host, port, address, use }: HostQuestion, steps: Steps | undefined): Decision {
  const text = renderHost(host);
  if (port !== undefined && !isPort(port)) return malformed(text, port, `${port} is not a port`);
  const rule = policy.find(host, port, steps);
  if (rule === undefined) {
    const other = port === undefined ? undefined : policy.find(host, undefined);
    const nearest = other?.action === "allow" ? other : undefined;
    return { action: "deny", reason: "not_allowed", host: text, port, rule, nearest, detail: undefined };
  }
  if (port === undefined && rule.action === "allow" && rule.ports !== "any" && (policy.deniesPorts || needsPorts(policy, address))) {
    return decideOnPorts({ policy, host, port, address }, rule.ports);
  }
  const answer = { host: text, port, rule, nearest: undefined, detail: undefined };
  if (rule.action === "deny") return { ...answer, action: "deny", reason: "denied" };
  const misuse = use === undefined ? undefined : judgeUse(policy.methods, { host, port }, use);
  if (misuse !== undefined) return { ...answer, action: "deny", ...misuse };
  if (address === undefined) return { ...answer, action: "allow", reason: "allowed" };
  return judgeAddress({ policy, host, port, address, answer });
}

/** Whether the answer for this address may differ from port to port. */
function needsPorts(policy: Policy, address: Address | undefined): boolean {
  if (address === undefined) return false;
  return policy.find({ kind: "address", address }, undefined) !== undefined || classifyAddress(address).kind === "special";
}

/** Answers a question without a port by the open ports of the host; by `named` where none is open. */
function decideOnPorts(question: HostQuestion, named: readonly number[]): Decision {
  const open = openPorts(question.policy, question.host);
  const answers = (open.length === 0 ? named : open).map((port) => decideHost({ ...question, port }, undefined));
  const chosen = answers.find(({ action }) => action === "allow") ?? answers[0];
  if (chosen === undefined) throw new Error("a rule without ports");
  return { ...chosen, port: undefined };
}

type Judgement = {
  policy: Policy;
  host: Host;
  port: number | undefined;
  address: Address;
  answer: Pick<Decision, "host" | "port" | "nearest" | "detail"> & { rule: PolicyRule };
};

function judgeAddress({ policy, host, port, address, answer }: Judgement): Decision {
  const asked = host.kind === "address" && host.address.family === address.family && host.address.value === address.value;
  const literal = asked ? answer.rule : policy.find({ kind: "address", address }, port);
  if (literal?.action === "deny" && literal.index < answer.rule.index) {
    return { ...answer, rule: literal, action: "deny", reason: "denied", detail: `it leads to ${address.text}` };
  }
  const addressClass = classifyAddress(address);
  const listed = literal?.action === "allow" || policy.allowPrivate.some((range) => rangeContains(range, address));
  if (addressClass.kind === "public" || listed) return { ...answer, action: "allow", reason: "allowed" };
  const isPrivate = host.kind === "name" && port !== undefined && policy.privatePorts.get(host.name)?.includes(port) === true;
  if (isPrivate && isPinnable(addressClass)) return { ...answer, action: "allow", reason: "allowed" };
  return { ...answer, action: "deny", reason: "not_allowed_local", detail: `it leads to ${address.text}: ${addressClass.name} (${addressClass.range})` };
}

function malformed(host: string, port: number | undefined, detail: string): Decision {
  return { action: "deny", reason: "denied", host, port, rule: undefined, nearest: undefined, detail };
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}
