import { classifyAddress } from "../../policy/address-class.ts";
import { type Address, rangeContains } from "../../policy/address.ts";
import { decide, type Decision } from "../../policy/decide.ts";
import { parseHost } from "../../policy/host-name.ts";
import { quote } from "../../policy/parsed.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import type { LineFacts } from "../log/line.ts";

/** What the policy says of a name: it may be asked for, it may only because the box runs in report mode, or it does not exist. */
export type NameVerdict = { action: "allow" | "report" | "deny"; decision: Decision };

/** Judges a name as it came in a question. What is no host name, an address written as a name among them, is denied. */
export function judgeName({ policy, report }: BoxPolicy, name: string): NameVerdict {
  const host = parseHost(name);
  // A question for an address literal would be allowed where the literal is listed, but no resolver knows it.
  if (!host.ok || host.value.kind === "address" || host.value.name !== name) {
    return { action: "deny", decision: { action: "deny", reason: "denied", host: quote(name), port: undefined, rule: undefined, nearest: undefined, detail: "not a host name" } };
  }
  const decision = decide(policy, { host: host.value });
  if (decision.action === "allow") return { action: "allow", decision };
  return { action: report && decision.reason === "not_allowed" ? "report" : "deny", decision };
}

/** Judges where a name leads; the action is never `report`, since report mode opens no special address. */
export function judgeAddress(box: Pick<BoxPolicy, "policy">, { action, decision }: NameVerdict, address: Address): Decision {
  if (action !== "report") return decide(box.policy, { host: decision.host, address });
  // No rule names the host, so only the rules for the address itself are left.
  const literal = box.policy.find({ kind: "address", address }, undefined);
  if (literal?.action === "deny") return { ...decision, rule: literal, action: "deny", reason: "denied", detail: `it leads to ${address.text}` };
  const addressClass = classifyAddress(address);
  const listed = literal !== undefined || box.policy.allowPrivate.some((range) => rangeContains(range, address));
  if (addressClass.kind === "public" || listed) return { ...decision, action: "allow" };
  return { ...decision, action: "deny", reason: "not_allowed_local", detail: `it leads to ${address.text}: ${addressClass.name} (${addressClass.range})` };
}

/** What a decision log line says beside the decision itself. */
export type LineInput = { verdict: NameVerdict; type: string | null; addresses?: readonly string[]; detail?: string | undefined };

/** Picks what a line about a name needs. */
export function collectFacts({ verdict: { action, decision }, type, addresses = [], detail }: LineInput): LineFacts {
  const { host, reason, rule } = decision;
  return { action, host, reason, rule, type, addresses: addresses.join(" "), detail: detail ?? decision.detail };
}
