import { type AllowPlace, commandOf, renderAllowCommand } from "../../policy/allow-command.ts";
import type { Decision } from "../../policy/decide.ts";
import type { DecisionEntry } from "../../policy/decision-record.ts";
import { renderOrigin } from "../../policy/effective-list.ts";
import { renderRule } from "../../policy/policy.ts";

export type DecisionLine = Extract<DecisionEntry, { kind: "decision" }>;

/** What a line says of a connection, and not of a question to the resolver; no port where none could be read. */
export type ConnectionFacts = { protocol: Exclude<DecisionLine["protocol"], "dns" | "address">; port: number | null; method: string | null; client: DecisionLine["client"] };

/**
 * What a line is made of. Every answer and place that is kept holds one, so it is no larger than it has to
 * be; `connection` is left out for DNS.
 */
export type LineFacts = Pick<Decision, "host" | "reason" | "rule" | "detail"> & { action: DecisionLine["action"]; type: string | null; addresses: string; connection?: ConnectionFacts };

/** Makes the line of a decision. */
export function renderLine({ action, host, reason, rule, type, addresses, detail, connection }: LineFacts, place?: AllowPlace): Omit<DecisionLine, "count"> {
  const port = connection?.port ?? null;
  return {
    kind: "decision",
    protocol: connection?.protocol ?? "dns",
    ...(connection === undefined ? {} : { method: connection.method }),
    host,
    port,
    type,
    addresses: addresses === "" ? [] : addresses.split(" "),
    action,
    reason,
    rule: rule === undefined ? null : renderRule(rule),
    source: rule === undefined ? null : rule.origins.map((origin) => renderOrigin(origin)).join(", "),
    detail: detail ?? null,
    hint: commandOf(renderAllowCommand({ host, port, reason, rule }, place)),
    client: connection?.client ?? null,
  };
}
