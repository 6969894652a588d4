import type { Connection } from "./connection.ts";

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
  pump(a, b, close);
  pump(b, a, close);
}

function pump(from: Connection, to: Connection, onClose: () => void): void {
  from.read({
    onBytes: (bytes) => {
      if (to.writeRead(bytes)) return true;
      to.onDrain(() => from.resume());
      return false;
    },
    onEnd: () => to.end(),
    onClose: (error) => {
      // An end was passed on; whatever else happened is none, and the other side learns that.
      if (error !== undefined || !to.socket.writableEnded) to.destroy(error !== undefined);
      onClose();
    },
  });
}
