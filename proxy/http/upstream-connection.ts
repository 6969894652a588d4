import type { Connection, Reader } from "../net/connection.ts";
import { LIMITS } from "../web-context.ts";
import { BodyFraming } from "./body-framing.ts";
import { LF } from "./field-bytes.ts";
import { isUnchanged, writeResponseHead } from "./head-writer.ts";
import { KeptBytes } from "./kept-bytes.ts";
import { MALFORMED, NEED_MORE } from "./message-head.ts";
import { ResponseHead } from "./response-head.ts";

/** Whoever asked and waits for the response. */
export type Requester = {
  /** HEAD is answered without a body. */
  readonly isHead: boolean;
  /** Of the version HTTP/1.x that it speaks. */
  readonly minor: number;
  /** It asked for WebSocket. */
  readonly isUpgrade: boolean;
  /** Its connection ends after the response. */
  readonly closes: boolean;
  /** A part of the response, to be handed on; false where it could not be at once. */
  forward: (bytes: Buffer) => boolean;
  /** A final response begins; `closes` tells that its end is the end of the connection. */
  onResponse: (closes: boolean) => void;
  onResponseDone: (reusable: boolean) => void;
  /** No response, or no whole one; `began` where a part of it came. */
  onResponseBroken: (why: string, began: boolean) => void;
  /** The server is gone after its response, while the request was still being sent. */
  onGone: () => void;
  /** The connection speaks WebSocket from now on; `rest` came already. */
  onUpgraded: (rest: Buffer) => void;
};

/** Parts of a body up to this size are written together with the head. */
const JOINED = 16 * 1024;

/** A connection to a server, or to the site's proxy, which serves one request after the other. */
export class UpstreamConnection implements Reader {
  readonly connection: Connection;
  /** Whose it is: scheme, name and port. */
  readonly key: string;
  /** The policy that it was opened under. */
  readonly epoch: number;
  /** Where it really leads; undefined where nobody can tell, and then it is not kept. */
  readonly address: string | undefined;
  /** It served a request before. */
  isReused = false;
  /** Since which tick nobody uses it. */
  idleSince = 0;
  private user: Requester | undefined;
  private readonly onUnusable: (connection: UpstreamConnection) => void;
  private readonly head = new ResponseHead();
  private readonly body = new BodyFraming();
  private readonly kept = new KeptBytes();
  private phase: "head" | "body" | "done" = "head";
  private began = false;

  constructor({ connection, key, epoch, onUnusable }: { connection: Connection; key: string; epoch: number; onUnusable: (connection: UpstreamConnection) => void }) {
    this.connection = connection;
    this.key = key;
    this.epoch = epoch;
    this.address = connection.socket.remoteAddress;
    this.onUnusable = onUnusable;
  }

  /** Bytes of the response's body so far, without the framing of chunks. */
  get bodyBytes(): number {
    return this.body.bytes;
  }

  /** Gets ready for the response to a request; undefined: nobody's. */
  serve(user: Requester | undefined): void {
    this.user = user;
    this.phase = "head";
    this.began = false;
    this.head.reset();
    this.body.begin(0, false);
  }

  /** Nobody wants what it says any more. */
  destroy(reset = false): void {
    this.user = undefined;
    this.connection.destroy(reset);
  }

  onBytes(bytes: Buffer): boolean {
    if (this.user === undefined || this.phase === "done") return this.refuse();
    this.began = true;
    if (this.kept.length === 0) return this.advance(this.user, bytes, 0, bytes.length);
    this.kept.add(bytes, 0, bytes.length);
    if (!bytes.includes(LF) && this.kept.length < LIMITS.headBytes) return true;
    const whole = this.kept.take();
    return this.advance(this.user, whole, 0, whole.length);
  }

  onEnd(): void {
    if (this.user === undefined) this.onUnusable(this);
    else if (this.phase === "done") this.user.onGone();
    else if (this.phase === "body" && this.body.untilClose) this.finish(this.user, false);
    else this.user.onResponseBroken("ended the connection before its response was whole", this.began);
  }

  onClose(error: Error | undefined): void {
    if (this.user === undefined) this.onUnusable(this);
    else if (this.phase === "done") this.user.onGone();
    else this.user.onResponseBroken(error === undefined ? "ended the connection before its response was whole" : "reset the connection", this.began);
  }

  /** Bytes that no request asked for: whoever came next would take them for its response. */
  private refuse(): boolean {
    if (this.user === undefined) this.onUnusable(this);
    else this.user.onGone();
    return false;
  }

  private advance(user: Requester, bytes: Buffer, from: number, to: number): boolean {
    let at = from;
    let flushed = true;
    while (this.phase === "head") {
      const length = this.head.parse(bytes, at, to);
      if (length === NEED_MORE) {
        this.kept.add(bytes, at, to);
        return flushed;
      }
      if (length === MALFORMED || !this.isExpected(user)) {
        user.onResponseBroken(`sent a response that is malformed: ${this.head.complaint}`, true);
        return false;
      }
      if (this.head.status === 101) return this.upgrade(user, bytes, at, length, to);
      if (this.head.isInterim) {
        // RFC 9110 section 15.2: HTTP/1.0 knows no interim response.
        if (user.minor === 1) flushed = user.forward(this.renderHead(bytes, at, length, false)) && flushed;
        at += length;
        this.head.reset();
        if (at === to) return flushed;
      } else {
        return this.begin(user, bytes, at, length, to) && flushed;
      }
    }
    const end = this.body.take(bytes, at, to);
    if (end < 0) {
      user.onResponseBroken("sent a malformed chunk", true);
      return false;
    }
    flushed = user.forward(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end)) && flushed;
    if (this.body.done) this.finish(user, end === to && !this.head.wantsClose && this.head.minor === 1);
    return flushed;
  }

  /** Hands on the head, and what came of the body. */
  private begin(user: Requester, bytes: Buffer, from: number, length: number, to: number): boolean {
    const { head, body } = this;
    body.begin(user.isHead || !head.mayHaveBody ? 0 : head.contentLength, head.chunked && !user.isHead && head.mayHaveBody);
    this.phase = "body";
    const end = body.take(bytes, from + length, to);
    if (end < 0) {
      user.onResponseBroken("sent a malformed chunk", true);
      return false;
    }
    const closes = user.closes || body.untilClose;
    user.onResponse(closes);
    const extra = end - from - length;
    let flushed = true;
    if (isUnchanged(head, closes)) {
      flushed = user.forward(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end));
    } else if (extra <= JOINED) {
      flushed = user.forward(writeResponseHead(head, bytes, from, length, { closes, extra }));
    } else {
      user.forward(writeResponseHead(head, bytes, from, length, { closes, extra: 0 }));
      flushed = user.forward(bytes.subarray(from + length, end));
    }
    if (body.done) this.finish(user, end === to && !head.wantsClose && head.minor === 1);
    return flushed;
  }

  private finish(user: Requester, reusable: boolean): void {
    this.phase = "done";
    user.onResponseDone(reusable);
  }

  /** Whether the response is one that the request may have. */
  private isExpected({ minor, isUpgrade }: Requester): boolean {
    const { head } = this;
    if (head.chunked && minor === 0) head.complaint = "it is chunked, which HTTP/1.0 does not know";
    // Clients ask their user for a password then, and send it to whoever asked.
    else if (head.status === 407) head.complaint = "it asks for a password for a proxy";
    else if (head.status === 101 && !(isUpgrade && head.isUpgrade)) head.complaint = "it changes to a protocol that nobody asked for";
    else return true;
    return false;
  }

  private upgrade(user: Requester, bytes: Buffer, from: number, length: number, to: number): boolean {
    user.forward(this.renderHead(bytes, from, length, false));
    user.onUpgraded(bytes.subarray(from + length, to));
    return true;
  }

  private renderHead(bytes: Buffer, from: number, length: number, closes: boolean): Buffer {
    return writeResponseHead(this.head, bytes, from, length, { closes, extra: 0 });
  }
}
