import type { TrafficEntry } from "../../policy/decision-record.ts";

/** Whose bytes they are. */
export type TrafficKey = Pick<TrafficEntry, "protocol" | "method" | "host" | "port" | "cut" | "bodies">;

type Window = { until: number; entry: TrafficEntry };

const WINDOW_MS = 10_000;
/** Windows open at a time; the oldest is written when one more is wanted. */
const MAX_WINDOWS = 5000;

/** Sums what connections carried, so that a line is written for many short ones. */
export class TrafficWindows {
  private readonly windows = new Map<string, Window>();

  add(key: TrafficKey, { bytesUp, bytesDown, durationMs }: Pick<TrafficEntry, "bytesUp" | "bytesDown" | "durationMs">, now: number): void {
    const bodies = key.bodies === undefined ? "" : `${key.bodies.up} ${key.bodies.down}`;
    const id = `${key.protocol} ${key.method ?? ""} ${key.host} ${key.port} ${key.cut} ${bodies}`;
    const known = this.windows.get(id)?.entry;
    if (known === undefined) {
      this.windows.set(id, { until: now + WINDOW_MS, entry: { kind: "traffic", ...key, bytesUp, bytesDown, durationMs, flows: 1 } });
      return;
    }
    known.bytesUp += bytesUp;
    known.bytesDown += bytesDown;
    known.durationMs += durationMs;
    known.flows += 1;
  }

  /** Takes the windows whose time is over, and the oldest where there are too many. */
  takeOver(now: number): TrafficEntry[] {
    const over: TrafficEntry[] = [];
    for (const [id, { until, entry }] of this.windows) {
      if (until > now && this.windows.size <= MAX_WINDOWS) break;
      this.windows.delete(id);
      over.push(entry);
    }
    return over;
  }

  takeAll(): TrafficEntry[] {
    const all = [...this.windows.values()].map(({ entry }) => entry);
    this.windows.clear();
    return all;
  }
}
