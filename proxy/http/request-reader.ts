import { LIMITS } from "../web-context.ts";
import { BodyFraming } from "./body-framing.ts";
import { LF } from "./field-bytes.ts";
import { KeptBytes } from "./kept-bytes.ts";
import { MALFORMED, NEED_MORE } from "./message-head.ts";
import { RequestHead } from "./request-head.ts";

/** A whole head in the bytes from `from` on, which came as far as `to`; they may be overwritten after the call. */
export type Stretch = { bytes: Buffer; from: number; length: number; to: number };

/** Who acts on what is read. Each call may change what is done with the next byte. */
export type RequestTaker = {
  onHead: (head: RequestHead, stretch: Stretch) => void;
  onBody: (bytes: Buffer) => void;
  onBodyDone: () => void;
  onMalformed: (complaint: string) => void;
};

/**
 * What is done with the next byte: it belongs to a head; or to a body that is sent on; it waits until the
 * request before is done with; it belongs to a body that nobody wants; it is dropped; it is somebody else's.
 */
export type Reading = "head" | "body" | "wait" | "discard" | "drop" | "gone";

/** Splits what a client sends into requests, and keeps what came too early. */
export class RequestReader {
  readonly head = new RequestHead();
  reading: Reading = "head";
  /** Nothing more is handed on for now, since nobody could take it. */
  isHeld = false;
  /** It is in the middle of what came, and goes on by itself. */
  isReading = false;
  private readonly body = new BodyFraming();
  private readonly kept = new KeptBytes();
  private readonly taker: RequestTaker;

  constructor(taker: RequestTaker) {
    this.taker = taker;
  }

  /** Whether something waits, a part of a head for example. */
  get keepsBytes(): boolean {
    return this.kept.length > 0;
  }

  /** Whether the body of the request came whole. */
  get isBodyDone(): boolean {
    return this.body.done;
  }

  /** Bytes of the body so far, without the framing of chunks. */
  get bodyBytes(): number {
    return this.body.bytes;
  }

  /** Whether more bytes would be of use now. */
  get wantsMore(): boolean {
    return !this.isHeld && this.reading !== "gone" && (this.reading !== "wait" || this.kept.length === 0);
  }

  /** Keeps bytes for later. */
  keep(bytes: Buffer): void {
    this.kept.add(bytes, 0, bytes.length);
  }

  /** Reads what came, after what was kept. */
  read(bytes: Buffer): void {
    const { kept } = this;
    if (kept.length === 0) {
      const at = this.consume(bytes, 0, bytes.length);
      if (at < bytes.length) kept.add(bytes, at, bytes.length);
      return;
    }
    this.keep(bytes);
    // A head goes on at the end of a line at the earliest.
    if (this.reading !== "head" || bytes.includes(LF) || kept.length >= LIMITS.headBytes) this.readKept();
  }

  /** Reads what was kept, as far as that is possible now. */
  readKept(): void {
    const { kept } = this;
    if (kept.length > 0) kept.drop(this.consume(kept.buffer, kept.start, kept.end) - kept.start);
  }

  /** The body of the request is sent on from now on. */
  release(): void {
    this.reading = this.body.done ? "wait" : "body";
  }

  /** The request is done with. What is left of its body is not sent on. */
  next(): void {
    this.isHeld = false;
    this.reading = this.body.done ? "head" : "discard";
    if (this.body.done) this.head.reset();
  }

  /** Lets go of the connection; returns what came already. */
  leave(): Buffer {
    this.reading = "gone";
    return this.kept.take();
  }

  private consume(bytes: Buffer, from: number, to: number): number {
    this.isReading = true;
    let at = from;
    while (at < to && !this.isHeld) {
      const next = this.step(bytes, at, to);
      if (next === at) break;
      at = next;
    }
    this.isReading = false;
    return at;
  }

  private step(bytes: Buffer, from: number, to: number): number {
    switch (this.reading) {
      case "head":
        return this.readHead(bytes, from, to);
      case "body":
        return this.readBody(bytes, from, to);
      case "discard": {
        const end = this.body.take(bytes, from, to);
        if (this.body.done) this.next();
        return end < 0 ? to : end;
      }
      case "wait":
        return from;
      case "drop":
      case "gone":
        return to;
    }
  }

  private readHead(bytes: Buffer, from: number, to: number): number {
    const { head } = this;
    const length = head.parse(bytes, from, to);
    if (length === NEED_MORE) return from;
    if (length === MALFORMED) {
      this.taker.onMalformed(head.complaint);
      return to;
    }
    this.body.begin(Math.max(head.contentLength, 0), head.chunked);
    this.reading = "wait";
    this.taker.onHead(head, { bytes, from, length, to });
    return from + length;
  }

  private readBody(bytes: Buffer, from: number, to: number): number {
    const end = this.body.take(bytes, from, to);
    if (end < 0) {
      this.taker.onMalformed("its body has a malformed chunk");
      return to;
    }
    this.taker.onBody(bytes.subarray(from, end));
    if (!this.body.done) return end;
    this.reading = "wait";
    this.taker.onBodyDone();
    return end;
  }
}
