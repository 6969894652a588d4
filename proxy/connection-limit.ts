import type { DecisionLog } from "./log/decision-log.ts";
import type { Connection } from "./net/connection.ts";
import { Slots } from "./net/slots.ts";

const TELL_MS = 10_000;

/** Bounds the connections of clients, each of which costs memory and two descriptors; one too many is ended at once, and that is written down. */
export class ConnectionLimit {
  private readonly max: number;
  private readonly log: Pick<DecisionLog, "write">;
  private readonly open = new Slots<Connection>();
  private refused = 0;
  private toldAt = 0;
  private readonly release = (connection: Connection): void => {
    this.open.delete(connection);
  };

  constructor(max: number, log: Pick<DecisionLog, "write">) {
    this.max = max;
    this.log = log;
  }

  /** Counts a connection until it is closed; false for one too many, which is gone already. */
  admit(connection: Connection): boolean {
    if (this.open.size >= this.max) {
      connection.destroy(true);
      this.refused += 1;
      this.tell(Date.now());
      return false;
    }
    this.open.add(connection);
    connection.onGone = this.release;
    return true;
  }

  /** Ends all of them. */
  destroyAll(): void {
    for (const connection of this.open.list()) connection.destroy();
  }

  private tell(now: number): void {
    if (Math.abs(now - this.toldAt) < TELL_MS) return;
    this.toldAt = now;
    this.log.write({ kind: "event", event: "connections-limited", detail: `${this.refused} ${this.refused === 1 ? "connection was" : "connections were"} ended at once: ${this.max} are open`, added: [], removed: [] });
    this.refused = 0;
  }
}
