import type { Socket } from "node:net";
import type { DecisionEntry } from "../../policy/decision-record.ts";
import { type KeeperMessage, type ProxyMessage, proxyMessageSchema } from "../../policy/keeper-message.ts";
import { readJsonLines } from "./json-lines.ts";
import type { Door } from "./listen.ts";

export type ProxyQuestion = Extract<ProxyMessage, { op: "learn" | "pin" }>;
type PolicyMessage = Extract<KeeperMessage, { op: "policy" }>;

export type ProxyLinkInput = {
  /** The policy in force, for a proxy that has just come. */
  current: () => PolicyMessage;
  answer: (question: ProxyQuestion) => Promise<{ ok: boolean; detail: string }>;
  onChange: () => void;
};

const MAX_LINE = 1024 * 1024;
/** Records that wait while there is no proxy to write them. */
const MAX_RECORDS = 1000;
/** A proxy is read no further while so many of its questions have no answer, or so many bytes for it are not read: it shall not grow this process. */
const MAX_UNANSWERED = 32;
const MAX_UNREAD_BYTES = 1024 * 1024;

/** The keeper's end of the connection to the proxy, of whom there is one at a time; a newer one takes the place of an older. */
export class ProxyLink {
  /** How often a proxy came after the first. */
  restarts = 0;
  /** What the proxy says of its own state. */
  degraded: readonly string[] = [];
  /** The last policy that the proxy confirmed, or refused. */
  confirmed: { version: number; ok: boolean; detail: string } | undefined;
  private readonly input: ProxyLinkInput;
  private socket: Socket | undefined;
  private came = false;
  private records: DecisionEntry[] = [];
  /** Questions of the present proxy that have no answer yet. */
  private unanswered = 0;

  constructor(input: ProxyLinkInput) {
    this.input = input;
  }

  /** Takes proxies from now on. */
  open(door: Door): void {
    door.open((socket) => this.take(socket));
  }

  get connected(): boolean {
    return this.socket !== undefined;
  }

  /** Settles when the proxy was given all of it, or there is none. */
  offer(message: PolicyMessage): Promise<void> {
    const { socket } = this;
    return new Promise((resolve) => {
      if (socket === undefined) resolve();
      else this.sendTo(socket, message, resolve);
    });
  }

  record(entry: DecisionEntry): void {
    const { socket } = this;
    if (socket === undefined || socket.writableLength > MAX_UNREAD_BYTES) {
      if (this.records.length < MAX_RECORDS) this.records.push(entry);
    } else this.send({ op: "record", entry });
  }

  private take(socket: Socket): void {
    this.socket?.destroy();
    this.socket = socket;
    this.confirmed = undefined;
    this.degraded = [];
    socket.on("close", () => {
      if (this.socket !== socket) return;
      this.socket = undefined;
      this.confirmed = undefined;
      this.input.onChange();
    });
    this.unanswered = 0;
    socket.on("drain", () => {
      if (this.socket !== socket) return;
      this.sendRecords();
      this.bound(socket);
    });
    readJsonLines(socket, MAX_LINE, (message) => this.read(socket, message));
    this.send(this.input.current());
    if (this.came) {
      this.restarts += 1;
      this.record({ kind: "event", event: "proxy-restarted", detail: `the resolver was started again, ${this.restarts} times so far`, added: [], removed: [] });
    }
    this.came = true;
    this.sendRecords();
    this.input.onChange();
  }

  private sendRecords(): void {
    const { records } = this;
    this.records = [];
    for (const entry of records) this.record(entry);
  }

  /** Reads on, or not for now. */
  private bound(socket: Socket): void {
    if (this.unanswered >= MAX_UNANSWERED || socket.writableLength > MAX_UNREAD_BYTES) socket.pause();
    else socket.resume();
  }

  private answer(socket: Socket, question: ProxyQuestion): void {
    const finish = (ok: boolean, detail: string): void => {
      this.sendTo(socket, { op: "done", id: question.id, ok, detail });
      if (this.socket !== socket) return;
      this.unanswered -= 1;
      this.bound(socket);
      // Who waits for the pins of a policy looks again.
      if (question.op === "pin") this.input.onChange();
    };
    this.unanswered += 1;
    this.bound(socket);
    void this.input.answer(question).then(
      ({ ok, detail }) => finish(ok, detail),
      (error: unknown) => finish(false, String(error)),
    );
  }

  private read(socket: Socket, given: unknown): void {
    const parsed = proxyMessageSchema.safeParse(given);
    // A proxy that says something else is not ours any more; a fresh one takes its place.
    if (!parsed.success) return void socket.destroy();
    const message = parsed.data;
    switch (message.op) {
      case "learn":
      case "pin":
        this.answer(socket, message);
        return;
      case "policy":
        this.confirmed = message;
        break;
      case "health":
        this.degraded = message.degraded;
        break;
    }
    this.input.onChange();
  }

  private send(message: KeeperMessage): void {
    if (this.socket !== undefined) this.sendTo(this.socket, message);
  }

  private sendTo(socket: Socket, message: KeeperMessage, given?: () => void): void {
    if (socket.destroyed) return given?.();
    socket.write(`${JSON.stringify(message)}\n`, given);
  }
}
