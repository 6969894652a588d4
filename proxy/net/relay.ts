import type { Connection, Reader } from "./connection.ts";

/** What a relay tells at its end. */
export type RelayEnd = () => void;

/**
 * Hands the bytes of two connections to each other until both are done: each half is closed when its
 * source is, a reset goes on as a reset. `onEnd` is called once, when both are gone.
 */
export function relay(a: Connection, b: Connection, onEnd: RelayEnd): void {
  let open = 2;
  const close = (): void => {
    open -= 1;
    if (open === 0) onEnd();
  };
  a.read(new Pump(a, b, close));
  b.read(new Pump(b, a, close));
}

/** One direction of a relay: the reader of `from`. */
export class Pump implements Reader {
  private readonly from: Connection;
  private readonly to: Connection;
  private readonly done: RelayEnd;

  constructor(from: Connection, to: Connection, done: RelayEnd) {
    this.from = from;
    this.to = to;
    this.done = done;
  }

  onBytes(bytes: Buffer): boolean {
    if (this.to.writeRead(bytes)) return true;
    this.to.onDrain(() => this.from.resume());
    return false;
  }

  onEnd(): void {
    this.to.end();
  }

  onClose(error: Error | undefined): void {
    // An end was passed on; whatever else happened is none, and the other side learns that.
    if (error !== undefined || !this.to.socket.writableEnded) this.to.destroy(error !== undefined);
    this.done();
  }
}
