import type { Address } from "../../policy/address.ts";
import type { Admitted } from "../access/access.ts";
import type { Connection } from "../net/connection.ts";
import { UpstreamConnection } from "./upstream-connection.ts";

/** Idle connections to one place, and in all. */
const [MAX_IDLE_PER_PLACE, MAX_IDLE] = [64, 512] as const;
/** Ticks that one may be idle: shorter than servers wait, so that few die while a request is on its way to them. */
const IDLE_TICKS = 15;

/**
 * Connections that no request uses at the moment. One is used again for the same scheme, name and port only,
 * under the policy that it was opened under, and while its address is still one that the name may lead to.
 */
export class UpstreamConnections {
  private readonly idle = new Map<string, UpstreamConnection[]>();
  private count = 0;
  private readonly onUnusable = (connection: UpstreamConnection): void => this.remove(connection);

  /** How many are idle. */
  get size(): number {
    return this.count;
  }

  /** Takes over a connection that was opened for a place. */
  adopt(connection: Connection, key: string, epoch: number): UpstreamConnection {
    const adopted = new UpstreamConnection({ connection, key, epoch, onUnusable: this.onUnusable });
    connection.read(adopted);
    return adopted;
  }

  /** Takes an idle connection to a place, if there is one. */
  take(key: string, { addresses, epoch }: Admitted): UpstreamConnection | undefined {
    const idle = this.idle.get(key);
    if (idle === undefined) return undefined;
    // The youngest first: it is the least likely to be closed meanwhile.
    for (let found = idle.pop(); found !== undefined; found = idle.pop()) {
      this.count -= 1;
      if (found.epoch === epoch && !found.connection.isClosed && leadsTo(addresses, found.address)) return found;
      found.destroy();
    }
    this.idle.delete(key);
    return undefined;
  }

  /** Takes back a connection whose response is over; `now` is a tick. */
  give(connection: UpstreamConnection, now: number): void {
    const idle = this.idle.get(connection.key) ?? [];
    if (connection.address === undefined || connection.connection.isClosed || idle.length >= MAX_IDLE_PER_PLACE || this.count >= MAX_IDLE) {
      connection.destroy();
      return;
    }
    connection.serve(undefined);
    connection.isReused = true;
    connection.idleSince = now;
    if (idle.length === 0) this.idle.set(connection.key, idle);
    idle.push(connection);
    this.count += 1;
  }

  /** Closes those that were idle for too long, or were opened under another policy. */
  sweep(now: number, epoch: number): void {
    for (const [key, idle] of this.idle) {
      const kept = idle.filter((connection) => connection.epoch === epoch && now - connection.idleSince < IDLE_TICKS);
      if (kept.length === idle.length) continue;
      for (const connection of idle) if (!kept.includes(connection)) connection.destroy();
      this.count -= idle.length - kept.length;
      if (kept.length === 0) this.idle.delete(key);
      else this.idle.set(key, kept);
    }
  }

  private remove(connection: UpstreamConnection): void {
    connection.destroy();
    const idle = this.idle.get(connection.key);
    const index = idle?.indexOf(connection) ?? -1;
    if (idle === undefined || index < 0) return;
    idle.splice(index, 1);
    this.count -= 1;
    if (idle.length === 0) this.idle.delete(connection.key);
  }
}

/** Whether a name with these addresses leads to this one; behind the site's proxy nobody knows. */
function leadsTo(addresses: readonly Address[], address: string | undefined): boolean {
  for (const { text } of addresses) if (text === address) return true;
  return addresses.length === 0;
}
