import { z } from "zod";
import { type Address, parseAddress } from "./address.ts";
import { renderAllowCommand } from "./allow-command.ts";
import type { BoxPolicy } from "./box-policy.ts";
import { decide, type Decision } from "./decide.ts";
import { renderOrigin } from "./effective-list.ts";
import { findReach, noteReach, type Reach } from "./explain-reach.ts";
import { parseExplainTarget } from "./explain-target.ts";
import { parseHost, type Host } from "./host-name.ts";
import { openPorts } from "./open-ports.ts";
import { escapeUnseen } from "./parsed.ts";
import { renderRule, type PolicyRule } from "./policy.ts";
import { REASONS } from "./reason.ts";

const verdict = { action: z.enum(["allow", "deny"]), reason: z.enum(REASONS), detail: z.string().nullable() };
const ruleView = z.strictObject({ text: z.string(), origins: z.array(z.string()) });

/** Why a host is or is not reachable, ready to print as JSON. */
export const explanationSchema = z.strictObject({
  /** Canonical; a malformed one quoted. */
  host: z.string(),
  /** Null: the question is whether the name is answered at all. */
  port: z.int().nullable(),
  ...verdict,
  /** True where the name is not allowed on this port, and an address that it leads to is. */
  byAddress: z.boolean(),
  /** The rule that decided, in canonical form, and where it was written. */
  rule: ruleView.nullable(),
  /** A rule that allows the same host on other ports. */
  nearest: ruleView.nullable(),
  openPorts: z.array(z.int()),
  /** Where the name leads, with the verdict of each address. */
  addresses: z.array(z.strictObject({ address: z.string(), ...verdict })),
  /** The command that would allow it, or one sentence where no command can; both null where it is allowed. */
  command: z.string().nullable(),
  advice: z.string().nullable(),
  notes: z.array(z.string()),
});
export type Explanation = z.infer<typeof explanationSchema>;

export type ExplainQuestion = {
  /** As a user types it: a name, an address, `host:port` or a URL. */
  host: string;
  port?: number | undefined;
  /** What the name resolves to, as far as somebody asked. */
  addresses?: readonly string[] | undefined;
};

/**
 * Explains by the enforcing code what the policy says about a host. A name none of whose addresses is let through
 * is refused as the first of them is. A name that leads to what is open by its address is reachable there.
 */
export function explainQuestion(box: Pick<BoxPolicy, "policy" | "report" | "ssh">, { host: text, port: givenPort, addresses: given = [] }: ExplainQuestion): Explanation {
  const { policy } = box;
  const target = parseExplainTarget(text);
  const port = givenPort ?? target.port;
  const byName = decide(policy, { host: target.host, port });
  const host = parseHost(target.host);
  const addresses = given.flatMap((each) => {
    const address = parseAddress(each);
    return address.ok ? [address.value] : [];
  });
  const judged = addresses.map((address) => ({ address, decision: decide(policy, { host: target.host, port, address }) }));
  const leads = judged.some(({ decision: { action } }) => action === "allow") ? undefined : judged[0]?.decision;
  const decision = byName.action === "allow" ? (leads ?? byName) : byName;
  const reached = (address: Address): Reach | undefined => (port === undefined ? undefined : findReach(box, address, port));
  const [reach] = decision.action === "allow" || !host.ok ? [] : listReachable(policy, host.value, addresses).flatMap((address) => reached(address) ?? []);
  const answer = decision.action === "allow" || reach !== undefined ? undefined : renderAllowCommand(decision);
  return {
    host: decision.host,
    port: port ?? null,
    ...(reach === undefined ? verdictOf(decision) : REACHED),
    byAddress: reach !== undefined,
    rule: reach ?? viewRule(decision.rule),
    nearest: viewRule(decision.nearest),
    openPorts: host.ok ? [...openPorts(policy, host.value)] : [],
    addresses: judged.map((each) => ({ address: each.address.text, ...(reach !== undefined && each.decision.action === "deny" && reached(each.address) !== undefined ? REACHED : verdictOf(each.decision)) })),
    command: answer !== undefined && "command" in answer ? answer.command : null,
    advice: answer !== undefined && "advice" in answer ? answer.advice : null,
    notes: [...target.notes, ...(reach === undefined ? noteModes(box.report, decision) : []), ...(host.ok ? noteReach(box, { host: host.value, port, decision, addresses }) : [])],
  };
}

/** A name that is not answered leads nowhere in a box. */
function listReachable(policy: BoxPolicy["policy"], host: Host, addresses: readonly Address[]): readonly Address[] {
  if (host.kind === "address") return [host.address];
  return decide(policy, { host }).action === "allow" ? addresses : [];
}

const REACHED = { action: "allow", reason: "allowed", detail: null } as const;

/** An explanation as lines for a terminal. */
export function renderExplanation(explanation: Explanation): readonly string[] {
  const { host, port, action, reason, byAddress, rule, nearest, openPorts: ports, addresses, detail, command, advice, notes } = explanation;
  const asked = port === null ? host : `${host.includes(":") && !host.startsWith('"') ? `[${host}]` : host}:${port}`;
  const lines = [
    `${asked}: ${action === "allow" ? (byAddress ? "allowed by address" : "allowed") : `refused (${reason})`}`,
    ...(rule === null ? ["  rule       no rule matches"] : [`  rule       ${describeRule(rule)}`]),
    ...(nearest === null ? [] : [`  nearest    ${describeRule(nearest)}`]),
    `  open ports ${ports.length === 0 ? "none" : ports.join(", ")}`,
    ...addresses.map((each) => `  address    ${each.address}: ${each.action === "allow" ? "allowed" : `refused (${each.reason})${each.detail === null ? "" : `, ${each.detail}`}`}`),
    ...(detail === null ? [] : [`  because    ${detail}`]),
    ...(command === null ? [] : [`  allow it   ${command}`]),
    ...(advice === null ? [] : [`  to allow   ${advice}`]),
    ...notes.map((note) => `  note       ${note}`),
  ];
  return lines.map((line) => escapeUnseen(line));
}

function verdictOf({ action, reason, detail }: Decision): Pick<Explanation, "action" | "reason" | "detail"> {
  return { action, reason, detail: detail ?? null };
}

function viewRule(rule: PolicyRule | undefined): Explanation["rule"] {
  return rule === undefined ? null : { text: renderRule(rule), origins: rule.origins.map((origin) => renderOrigin(origin)) };
}

function describeRule({ text, origins }: { text: string; origins: readonly string[] }): string {
  return origins.length === 0 ? text : `${text}  (${origins.join(", ")})`;
}

function noteModes(report: boolean, decision: Decision): readonly string[] {
  return report && decision.reason === "not_allowed" ? ["report mode: the box lets it through all the same and writes it down"] : [];
}
