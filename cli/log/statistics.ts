import { z } from "zod";
import type { DecisionRecord } from "../../policy/decision-record.ts";

const count = z.int().min(0);

/** Decisions of one kind: let through, refused, and let through by report mode only. */
const decided = { allowed: count, refused: count, reported: count };

const traffic = { bytesUp: count, bytesDown: count, flows: count };

/** One host of a session; times are RFC 3339, of the first and the last line about it. */
const hostStatistics = z.strictObject({
  host: z.string(),
  ports: z.array(z.int()),
  ...decided,
  ...traffic,
  /** By protocol, as the log calls them. */
  protocols: z.array(z.strictObject({ protocol: z.string(), ...decided, ...traffic })),
  first: z.string(),
  last: z.string(),
});

/** The answer of `agentbox logs stats --json`; `session` is null where none is recorded. */
export const statisticsSchema = z.strictObject({
  version: z.literal(1),
  session: z.string().nullable(),
  running: z.boolean(),
  /** Most bytes first, then most decisions. */
  hosts: z.array(hostStatistics),
  total: z.strictObject({ ...decided, ...traffic }),
  first: z.string().nullable(),
  last: z.string().nullable(),
  /** Lines that the log had and has no more, and lines that were not understood: what is counted is not all. */
  gone: count,
  unread: count,
});

export type HostStatistics = z.infer<typeof hostStatistics>;
export type Statistics = Pick<z.infer<typeof statisticsSchema>, "hosts" | "total" | "first" | "last">;

type Counted = Extract<DecisionRecord, { kind: "decision" | "traffic" }>;
type Sums = Statistics["total"];

/** Counts what a session did by host. Records come in their order. */
export function collectStatistics(records: readonly DecisionRecord[]): Statistics {
  const counted = records.filter((record): record is Counted => record.kind !== "event");
  const hosts = [...Map.groupBy(counted, ({ host }) => host)].map(([host, own]) => describeHost(host, own));
  return {
    hosts: hosts.toSorted((a, b) => bytesOf(b) - bytesOf(a) || decisionsOf(b) - decisionsOf(a) || (a.host < b.host ? -1 : 1)),
    total: sumUp(counted),
    first: counted[0]?.time ?? null,
    last: counted.at(-1)?.time ?? null,
  };
}

function describeHost(host: string, own: readonly Counted[]): HostStatistics {
  const ports = new Set(own.flatMap(({ port }) => (port === null ? [] : [port])));
  const protocols = [...Map.groupBy(own, ({ protocol }) => protocol)].map(([protocol, part]) => ({ protocol, ...sumUp(part) }));
  return {
    host,
    ports: [...ports].toSorted((a, b) => a - b),
    ...sumUp(own),
    protocols: protocols.toSorted((a, b) => (a.protocol < b.protocol ? -1 : 1)),
    first: own[0]?.time ?? "",
    last: own.at(-1)?.time ?? "",
  };
}

function sumUp(records: readonly Counted[]): Sums {
  const sums: Sums = { allowed: 0, refused: 0, reported: 0, bytesUp: 0, bytesDown: 0, flows: 0 };
  for (const record of records) {
    if (record.kind === "traffic") {
      sums.bytesUp += record.bytesUp;
      sums.bytesDown += record.bytesDown;
      sums.flows += record.flows;
    } else {
      sums[OUTCOMES[record.action]] += record.count;
    }
  }
  return sums;
}

const OUTCOMES = { allow: "allowed", deny: "refused", report: "reported" } as const;

function bytesOf({ bytesUp, bytesDown }: Sums): number {
  return bytesUp + bytesDown;
}

function decisionsOf({ allowed, refused, reported }: Sums): number {
  return allowed + refused + reported;
}
