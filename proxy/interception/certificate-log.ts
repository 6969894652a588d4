import type { DecisionEntry } from "../../policy/decision-record.ts";
import type { DecisionLog } from "../log/decision-log.ts";

type Kind = Extract<Extract<DecisionEntry, { kind: "event" }>["event"], "certificate-issued" | "certificate-refused">;

/** Lines of one kind written at once, and how many more each second. */
const BURST = 100;
const PER_SECOND = 1;

/**
 * Writes down which hosts certificates are made for, and which clients do not want them. Below a wildcard a
 * program can ask for ever new names: beyond some they are only counted, and the next line tells how many, so that
 * they push nothing else out of the log.
 */
export class CertificateLog {
  private readonly log: Pick<DecisionLog, "write">;
  private readonly budgets: Record<Kind, { tokens: number; at: number; unwritten: number }> = { "certificate-issued": { tokens: BURST, at: 0, unwritten: 0 }, "certificate-refused": { tokens: BURST, at: 0, unwritten: 0 } };

  constructor(log: Pick<DecisionLog, "write">) {
    this.log = log;
  }

  /** A certificate was made, valid until then (Unix ms). */
  writeIssued(host: string, until: number): void {
    this.write("certificate-issued", `${host}, valid until ${new Date(until).toISOString()}`);
  }

  /** A client ended the handshake because of the certificate; `alert` is what it said. */
  writeRefused(host: string, alert: string): void {
    this.write("certificate-refused", `a client does not accept the certificate made for ${host} (${alert}): it has to trust the authority, or the host belongs into mitm.passthrough`);
  }

  private write(event: Kind, detail: string): void {
    const budget = this.budgets[event];
    const now = Date.now();
    budget.tokens = Math.min(BURST, budget.tokens + (Math.max(0, now - budget.at) * PER_SECOND) / 1000);
    budget.at = now;
    if (budget.tokens < 1) {
      budget.unwritten += 1;
      return;
    }
    budget.tokens -= 1;
    const others = budget.unwritten === 0 ? "" : `; ${budget.unwritten} more since the last such line`;
    budget.unwritten = 0;
    this.log.write({ kind: "event", event, detail: `${detail}${others}`, added: [], removed: [] });
  }
}
