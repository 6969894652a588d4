import type { Connection, Reader } from "./connection.ts";

/** How long whoever is left behind may take to read the last words and to close. */
const LINGER_MS = 2000;

/**
 * Says the last words and ends a connection. What still comes is read and dropped for a moment: a close with
 * unread bytes is a reset, and a reset destroys the words on their way.
 */
export function leave(connection: Connection, words?: Buffer | string): void {
  if (connection.isClosed) return;
  const timer = setTimeout(() => connection.destroy(), LINGER_MS);
  timer.unref();
  const rest: Reader = { onBytes: () => true, onEnd: () => undefined, onClose: () => clearTimeout(timer) };
  connection.end(words);
  connection.read(rest);
}
