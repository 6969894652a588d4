import { z } from "zod";
import { commandOf, renderAllowCommand } from "../../policy/allow-command.ts";
import { REASONS } from "../../policy/reason.ts";
import type { DecisionRecord } from "../../policy/decision-record.ts";
import { isTelemetryHost } from "../../policy/telemetry-hosts.ts";

/** What a session was refused, or would have been if it did not run in report mode: one for each host, port, protocol, method and reason. */
const refusal = z.strictObject({
  /** Of the last one, RFC 3339. */
  time: z.string(),
  host: z.string(),
  /** Null for a question to the resolver. */
  port: z.int().nullable(),
  protocol: z.string(),
  /** The HTTP method, where there is one. */
  method: z.string().nullable(),
  reason: z.string(),
  rule: z.string().nullable(),
  source: z.string().nullable(),
  detail: z.string().nullable(),
  /** The program that sent it, where that is known. */
  program: z.string().nullable(),
  /** True where it was let through and only written down. */
  reported: z.boolean(),
  count: z.int(),
  /** What allows it, or a sentence where no command can. */
  command: z.string().nullable(),
  advice: z.string().nullable(),
});

/** The answer of `agentbox blocked --json`; `session` is null where none is recorded. */
export const blockedSchema = z.strictObject({ version: z.literal(1), session: z.string().nullable(), running: z.boolean(), refusals: z.array(refusal), telemetry: z.int() });

export type Refusal = z.infer<typeof refusal>;

type Decided = Extract<DecisionRecord, { kind: "decision" }>;

/** Collects what was refused, in the order of first refusal. `telemetry` counts the hosts that are left out unless `all`. */
export function collectRefusals(records: readonly DecisionRecord[], { all }: { all: boolean }): { refusals: Refusal[]; telemetry: number } {
  const found = new Map<string, Refusal>();
  const left = new Set<string>();
  for (const record of records) {
    if (record.kind !== "decision" || record.action === "allow") continue;
    if (!all && isTelemetryHost(record.host)) {
      left.add(record.host);
      continue;
    }
    const key = JSON.stringify([record.host, record.port, protocolOf(record), methodOf(record), record.reason, record.action]);
    const earlier = found.get(key);
    found.set(key, earlier === undefined ? describeRefusal(record) : { ...earlier, time: record.time, count: earlier.count + record.count });
  }
  return { refusals: [...found.values()], telemetry: left.size };
}

function describeRefusal(record: Decided): Refusal {
  const { time, host, port, reason, rule, source, detail, client, action, count } = record;
  return { time, host, port, protocol: protocolOf(record), method: methodOf(record), reason, rule, source, detail, program: client?.command ?? null, reported: action === "report", count, ...findRemedy(record) };
}

/** The kind of question to a resolver says nothing about what is refused; the transport of a packet does. */
function protocolOf({ protocol, type }: Decided): string {
  return protocol === "address" ? (type ?? protocol) : protocol;
}

/** CONNECT says no more than the protocol. */
function methodOf({ protocol, method }: Decided): string | null {
  return protocol === "https-connect" ? null : (method ?? null);
}

/**
 * What allows it. The log was written from a box: a command of it is taken only where it is ours in form,
 * so that nobody pastes what an agent made up.
 */
function findRemedy({ host, port, reason, hint, rule, source }: Decided): Pick<Refusal, "command" | "advice"> {
  if (hint !== null && isOurCommand(hint)) return { command: hint, advice: null };
  const known = REASONS.find((candidate) => candidate === reason);
  if (known === undefined) return { command: null, advice: null };
  // Another deny, of a pattern or of a file, is not taken back by the host's name.
  if (known === "denied" && rule === `deny ${host}` && /^policy deny\b/.test(source ?? "")) return { command: null, advice: `denied for the session; agentbox policy allow ${host} takes that back` };
  if (known === "denied") return { command: null, advice: rule === null ? "no command allows a malformed question" : `remove the rule that denies it${source === null ? "" : ` (${source})`}` };
  const answer = renderAllowCommand({ host, port, reason: known });
  return { command: commandOf(answer), advice: "advice" in answer ? answer.advice : null };
}

function isOurCommand(text: string): boolean {
  return /^agentbox policy allow (?:[a-z0-9_][a-z0-9_.-]*(?::[0-9]{1,5})?|'\[[0-9a-f:.]+\](?::[0-9]{1,5})?'|[0-9a-f:]+)$/.test(text);
}
