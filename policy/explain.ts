import { z } from "zod";
import { parseAddress } from "./address.ts";
import { renderAllowCommand } from "./allow-command.ts";
import type { BoxPolicy } from "./box-policy.ts";
import { decide, type Decision } from "./decide.ts";
import { renderOrigin } from "./effective-list.ts";
import { parseExplainTarget } from "./explain-target.ts";
import { parseHost } from "./host-name.ts";
import { openPorts } from "./open-ports.ts";
import { escapeUnseen } from "./parsed.ts";
import { renderRule, type PolicyRule } from "./policy.ts";

const verdict = { action: z.enum(["allow", "deny"]), reason: z.enum(["allowed", "denied", "not_allowed", "not_allowed_local"]), detail: z.string().nullable() };
const ruleView = z.strictObject({ text: z.string(), origins: z.array(z.string()) });

/** Why a host is or is not reachable, ready to print as JSON. */
export const explanationSchema = z.strictObject({
  /** Canonical; a malformed one quoted. */
  host: z.string(),
  /** Null: the question is whether the name is answered at all. */
  port: z.int().nullable(),
  ...verdict,
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

/** Explains by the enforcing code what the policy says about a host. A name none of whose addresses is let through is refused as the first of them is. */
export function explainQuestion({ policy, report, ssh }: Pick<BoxPolicy, "policy" | "report" | "ssh">, { host: text, port: givenPort, addresses = [] }: ExplainQuestion): Explanation {
  const target = parseExplainTarget(text);
  const port = givenPort ?? target.port;
  const byName = decide(policy, { host: target.host, port });
  const judged = addresses.flatMap((each) => {
    const address = parseAddress(each);
    return address.ok ? [{ address: address.value.text, decision: decide(policy, { host: target.host, port, address: address.value }) }] : [];
  });
  const leads = judged.some(({ decision: { action } }) => action === "allow") ? undefined : judged[0]?.decision;
  const decision = byName.action === "allow" ? (leads ?? byName) : byName;
  const host = parseHost(target.host);
  const answer = decision.action === "allow" ? undefined : renderAllowCommand(decision);
  return {
    host: decision.host,
    port: port ?? null,
    ...verdictOf(decision),
    rule: viewRule(decision.rule),
    nearest: viewRule(decision.nearest),
    openPorts: host.ok ? [...openPorts(policy, host.value)] : [],
    addresses: judged.map((each) => ({ address: each.address, ...verdictOf(each.decision) })),
    command: answer !== undefined && "command" in answer ? answer.command : null,
    advice: answer !== undefined && "advice" in answer ? answer.advice : null,
    notes: [...target.notes, ...noteModes({ report, ssh, decision })],
  };
}

/** An explanation as lines for a terminal. */
export function renderExplanation(explanation: Explanation): readonly string[] {
  const { host, port, action, reason, rule, nearest, openPorts: ports, addresses, detail, command, advice, notes } = explanation;
  const asked = port === null ? host : `${host.includes(":") && !host.startsWith('"') ? `[${host}]` : host}:${port}`;
  const lines = [
    `${asked}: ${action === "allow" ? "allowed" : `refused (${reason})`}`,
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

function noteModes({ report, ssh, decision }: Pick<BoxPolicy, "report" | "ssh"> & { decision: Decision }): readonly string[] {
  if (decision.action === "allow") return [];
  return [
    ...(report && decision.reason === "not_allowed" ? ["report mode: the box lets it through all the same and writes it down"] : []),
    ...(ssh === "any" && decision.port === 22 ? ["ssh = any: port 22 of every public address is open to whoever knows the address"] : []),
  ];
}
