import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { type KeeperMessage, type ProxyMessage, proxyMessageSchema } from "../../../policy/keeper-message.ts";

export type Surroundings = Omit<Extract<KeeperMessage, { op: "policy" }>, "op" | "version" | "session">;

type Learn = Extract<ProxyMessage, { op: "learn" }>;
type Pin = Extract<ProxyMessage, { op: "pin" }>;
type Report = Extract<ProxyMessage, { op: "policy" }>;

/** The keeper's side of the proxy's socket, as small as a test needs it: it records, and says what it is told to say. */
export class KeeperPeer {
  readonly learned: Learn[] = [];
  readonly pinned: Pin[] = [];
  readonly reports: Report[] = [];
  degraded: readonly string[] = [];
  /** What is said to a `learn`; undefined leaves it unanswered until `release`. */
  verdict: { ok: boolean; detail: string } | undefined = { ok: true, detail: "" };
  surroundings: Surroundings;
  private readonly server: Server;
  private peer: Socket | undefined;
  private version = 0;
  private readonly held: number[] = [];

  private constructor(server: Server, surroundings: Surroundings) {
    this.server = server;
    this.surroundings = surroundings;
    server.on("connection", (socket) => this.accept(socket));
  }

  static async listen(path: string, surroundings: Surroundings): Promise<KeeperPeer> {
    const server = createServer();
    server.listen(path);
    await once(server, "listening");
    return new KeeperPeer(server, surroundings);
  }

  /** Sends another policy and waits until the proxy says what became of it. */
  async replace(surroundings: Partial<Surroundings>): Promise<Report> {
    this.surroundings = { ...this.surroundings, ...surroundings };
    const report = this.nextReport();
    this.sendPolicy();
    return report;
  }

  /** The next word of the proxy about a policy. */
  async nextReport(): Promise<Report> {
    const before = this.reports.length;
    for (;;) {
      const report = this.reports[before];
      if (report !== undefined) return report;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Answers the learns that were held back. */
  release(): void {
    for (const id of this.held.splice(0)) this.send({ op: "done", id, ok: true, detail: "" });
  }

  send(message: KeeperMessage): void {
    this.peer?.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends the connection, as a keeper that died. */
  hangUp(): void {
    this.peer?.destroy();
  }

  async close(): Promise<void> {
    this.hangUp();
    this.server.close();
    await once(this.server, "close");
  }

  private accept(socket: Socket): void {
    this.peer = socket;
    let buffered = "";
    socket.setEncoding("utf8");
    socket.on("error", () => socket.destroy());
    socket.on("data", (text: string) => {
      const lines = (buffered + text).split("\n");
      buffered = lines.pop() ?? "";
      for (const line of lines) this.take(proxyMessageSchema.parse(JSON.parse(line)));
    });
    this.sendPolicy();
  }

  private sendPolicy(): void {
    this.version += 1;
    this.send({ op: "policy", version: this.version, session: "test", ...this.surroundings });
  }

  private take(message: ProxyMessage): void {
    switch (message.op) {
      case "learn":
        this.learned.push(message);
        if (this.verdict === undefined) this.held.push(message.id);
        else this.send({ op: "done", id: message.id, ...this.verdict });
        break;
      case "pin":
        this.pinned.push(message);
        this.send({ op: "done", id: message.id, ok: true, detail: "" });
        break;
      case "policy":
        this.reports.push(message);
        break;
      case "health":
        this.degraded = message.degraded;
        break;
    }
  }
}
