import type { TrafficEntry } from "../../policy/decision-record.ts";
import type { Kept } from "./pending-file.ts";

/** Whose bytes they are. */
export type TrafficKey = Pick<TrafficEntry, "protocol" | "method" | "host" | "port" | "cut" | "bodies">;

/** What is summed at the moment; once it is over it counts no more. */
export type TrafficWindow = { readonly until: number; isOver: boolean; kept: Kept | undefined; readonly entry: TrafficEntry };

type Carried = Pick<TrafficEntry, "bytesUp" | "bytesDown" | "durationMs">;

const WINDOW_MS = 10_000;
/** Windows open at a time; the oldest is written when one more is wanted. */
const MAX_WINDOWS = 5000;

/** Sums what connections carried, so that a line is written for many short ones. */
export class TrafficWindows {
  private readonly windows = new Map<string, TrafficWindow>();

  /** Adds what one connection carried; returns the window, for who adds to the same again. */
  add(key: TrafficKey, carried: Carried, now: number): TrafficWindow {
    const bodies = key.bodies === undefined ? "" : `${key.bodies.up} ${key.bodies.down}`;
    const id = `${key.protocol} ${key.method ?? ""} ${key.host} ${key.port} ${key.cut} ${bodies}`;
    const window = this.windows.get(id) ?? { until: now + WINDOW_MS, isOver: false, kept: undefined, entry: { kind: "traffic", ...key, bytesUp: 0, bytesDown: 0, durationMs: 0, flows: 0 } };
    this.windows.set(id, window);
    addTo(window, carried);
    return window;
  }

  /** Takes the windows whose time is over, and the oldest where there are too many. */
  takeOver(now: number): TrafficEntry[] {
    const over: TrafficEntry[] = [];
    for (const [id, window] of this.windows) {
      if (window.until > now && this.windows.size <= MAX_WINDOWS) break;
      this.windows.delete(id);
      window.isOver = true;
      over.push(window.entry);
    }
    return over;
  }

  /** What is summed at the moment, the oldest first. */
  list(): Iterable<TrafficWindow> {
    return this.windows.values();
  }

  takeAll(): TrafficEntry[] {
    const all = [...this.windows.values()];
    for (const window of all) window.isOver = true;
    this.windows.clear();
    return all.map(({ entry }) => entry);
  }
}

/** Adds what one connection carried to a window that is not over. */
export function addTo({ entry }: TrafficWindow, { bytesUp, bytesDown, durationMs }: Carried): void {
  entry.bytesUp += bytesUp;
  entry.bytesDown += bytesDown;
  entry.durationMs += durationMs;
  entry.flows += 1;
}
