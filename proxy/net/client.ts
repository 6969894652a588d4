import type { ConnectionFacts } from "../log/line.ts";
import type { Connection } from "./connection.ts";

/** Says for the log who a client is, as far as the connection tells. */
export function describeClient({ socket }: Connection): ConnectionFacts["client"] {
  return { address: socket.remoteAddress ?? null, uid: null, pid: null, command: null };
}
