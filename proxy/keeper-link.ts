import { connect, type Socket } from "node:net";
import { keeperMessageSchema, type KeeperMessage, type ProxyMessage } from "../policy/keeper-message.ts";

type Numbered = Extract<ProxyMessage, { id: number }>;
/** `Omit` of each member of a union on its own. */
type Unnumbered = Numbered extends infer Message ? (Message extends Numbered ? Omit<Message, "id"> : never) : never;
export type Done = { ok: boolean; detail: string };

/** What comes from the keeper without being asked for. */
export type KeeperNews = Exclude<KeeperMessage, { op: "done" }>;

const ANSWER_LIMIT_MS = 2000;
/** The largest policy of the tests has 100,000 entries; the keeper is trusted, but not to be without a bound. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** The connection to the keeper: one JSON object a line, both ways. */
export class KeeperLink {
  private readonly socket: Socket;
  private readonly onNews: (news: KeeperNews) => void;
  private readonly onEnd: (why: string) => void;
  private readonly waiting = new Map<number, (done: Done) => void>();
  private chunks: string[] = [];
  private length = 0;
  private nextId = 0;

  /** `onEnd` is called once, when nothing more can come. */
  constructor(path: string, onNews: (news: KeeperNews) => void, onEnd: (why: string) => void) {
    this.onNews = onNews;
    this.onEnd = onEnd;
    this.socket = connect(path);
    this.socket.setEncoding("utf8");
    this.socket.on("data", (text: string) => this.take(text));
    this.socket.on("error", (error) => this.end(error.message));
    this.socket.on("close", () => this.end("the keeper closed the connection"));
  }

  /** Asks the keeper and waits for its answer; no answer in two seconds counts as a refusal. */
  ask(message: Unnumbered): Promise<Done> {
    const id = this.nextId;
    this.nextId += 1;
    return new Promise((resolve) => {
      const timer = setTimeout(() => finish({ ok: false, detail: "the keeper does not answer" }), ANSWER_LIMIT_MS);
      const finish = (done: Done): void => {
        clearTimeout(timer);
        this.waiting.delete(id);
        resolve(done);
      };
      this.waiting.set(id, finish);
      this.send({ ...message, id });
    });
  }

  /** Tells the keeper something that has no answer. */
  send(message: ProxyMessage): void {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }

  close(): void {
    this.socket.destroy();
  }

  private take(text: string): void {
    const lines = text.split("\n");
    const last = lines.pop() ?? "";
    for (const line of lines) {
      this.chunks.push(line);
      this.read(this.chunks.join(""));
      this.chunks = [];
      this.length = 0;
    }
    if (last !== "") this.chunks.push(last);
    this.length += last.length;
    if (this.length > MAX_LINE_BYTES) this.end("the keeper sent a line without end");
  }

  private read(line: string): void {
    const message = keeperMessageSchema.safeParse(parseJson(line));
    // A keeper that this program does not understand is one of another version: there is nothing to go on with.
    if (!message.success) return this.end(`the keeper sent something else than a message: ${message.error.issues[0]?.message ?? ""}`);
    if (message.data.op === "done") this.waiting.get(message.data.id)?.(message.data);
    else this.onNews(message.data);
  }

  private end(why: string): void {
    this.socket.destroy();
    for (const finish of this.waiting.values()) finish({ ok: false, detail: why });
    this.onEnd(why);
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The schema refuses it.
    return undefined;
  }
}
