import type { ConnectionFacts } from "../log/line.ts";
import type { Connection } from "./connection.ts";

type Client = NonNullable<ConnectionFacts["client"]>;

/** Says for the log who a client is, as far as the connection tells. The system is asked only when a line is written. */
export function describeClient(connection: Connection): Client {
  return new LazyClient(connection);
}

class LazyClient implements Client {
  readonly uid = null;
  readonly pid = null;
  readonly command = null;
  private readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  get address(): string | null {
    return this.connection.socket.remoteAddress ?? null;
  }
}
