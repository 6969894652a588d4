import type { DecisionLog } from "../log/decision-log.ts";

/** Certificates written down at once, and how many more each second. */
const BURST = 100;
const PER_SECOND = 1;

/**
 * Writes down which hosts certificates are made for. Below a wildcard a program can ask for ever new names: beyond
 * some they are only counted, and the next line tells how many, so that they push nothing else out of the log.
 */
export function recordIssued(log: Pick<DecisionLog, "write">): (host: string, until: number) => void {
  let tokens = BURST;
  let at = 0;
  let unwritten = 0;
  return (host, until) => {
    const now = Date.now();
    tokens = Math.min(BURST, tokens + (Math.max(0, now - at) * PER_SECOND) / 1000);
    at = now;
    if (tokens < 1) {
      unwritten += 1;
      return;
    }
    tokens -= 1;
    const others = unwritten === 0 ? "" : `; ${unwritten} more were made for others since the last line`;
    unwritten = 0;
    log.write({ kind: "event", event: "certificate-issued", detail: `${host}, valid until ${new Date(until).toISOString()}${others}`, added: [], removed: [] });
  };
}
