import type { Connection, Reader } from "../net/connection.ts";
import { LIMITS } from "../web-context.ts";
import { type Answer, makeAnswer, renderAnswer } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { HttpListener } from "./http-listener.ts";
import type { LastRequest } from "./last-request.ts";
import type { RequestHead } from "./request-head.ts";
import { judgeRequest, refuseMalformed } from "./request-judge.ts";
import { RequestReader, type RequestTaker, type Stretch } from "./request-reader.ts";
import type { Place } from "./request-route.ts";

/** A body that is refused is read to its end up to this size; a larger one costs the connection. */
const MAX_DISCARDED = 64 * 1024;
/** Ticks: for a head; for a client that was told of the end, quiet and in all; for a connection on which nothing happens. */
const [HEAD_TICKS, QUIET_TICKS, LINGER_TICKS, IDLE_TICKS] = [LIMITS.headMs / 1000, 10, 60, 2 * 3600] as const;

/** One client's connection: requests one after the other, each judged on its own. */
export class HttpSession implements Reader, RequestTaker {
  readonly client: Connection;
  readonly listener: HttpListener;
  readonly place: Place;
  /** Its place among the open ones. */
  slot = -1;
  /** What the last plain request came to. */
  last: LastRequest | undefined;
  /** Requests that are done with. */
  served = 0;
  /** Since which tick nothing came or went. */
  activeAt: number;
  private readonly requests = new RequestReader(this);
  private exchange: Exchange | undefined;
  private isPaused = false;
  private isEnded = false;
  /** Since which tick a head is awaited, or the client's end. */
  private since: number;

  constructor(client: Connection, listener: HttpListener, place: Place) {
    this.client = client;
    this.listener = listener;
    this.place = place;
    this.activeAt = listener.tick;
    this.since = listener.tick;
  }

  get scheme(): "http" | "https" {
    return this.place.inside?.scheme ?? "http";
  }

  /** Bytes of the request's body so far. */
  get bodyBytes(): number {
    return this.requests.bodyBytes;
  }

  get isGone(): boolean {
    return this.requests.reading === "gone";
  }

  /** Begins with what was read already. */
  start(first: Buffer): void {
    this.requests.keep(first);
    this.client.read(this);
    this.proceed();
  }

  onBytes(bytes: Buffer): boolean {
    const { requests, listener } = this;
    this.activeAt = listener.tick;
    const wasKeeping = requests.keepsBytes;
    requests.read(bytes);
    if (!wasKeeping && requests.keepsBytes && requests.reading === "head") this.since = listener.tick;
    this.exchange?.flush();
    this.isPaused = !requests.wantsMore;
    return !this.isPaused;
  }

  onEnd(): void {
    this.isEnded = true;
    this.proceed();
  }

  onClose(): void {
    this.requests.leave();
    this.listener.forget(this);
    this.exchange?.abort();
    this.exchange = undefined;
  }

  onHead(head: RequestHead, stretch: Stretch): void {
    judgeRequest(this, head, stretch);
  }

  onBody(bytes: Buffer): void {
    const { exchange, requests } = this;
    if (exchange === undefined || exchange.send(bytes)) return;
    requests.isHeld = true;
    exchange.onSent(() => {
      if (this.exchange === exchange) this.unhold();
    });
  }

  onBodyDone(): void {
    this.exchange?.finishRequest();
  }

  onMalformed(complaint: string): void {
    this.refuse(this.requests.head.tooLarge ? 431 : 400, complaint);
  }

  /** Looks whether its time is over. */
  sweep(tick: number): void {
    const { requests, served } = this;
    const [quiet, waited] = [tick - this.activeAt, tick - this.since];
    if (requests.reading === "drop" ? quiet > QUIET_TICKS || waited > LINGER_TICKS : quiet > IDLE_TICKS) this.client.destroy();
    else if (requests.reading !== "head" || waited <= HEAD_TICKS) return;
    else if (requests.keepsBytes) this.refuse(408, `it is not complete after ${HEAD_TICKS} seconds`);
    // Browsers open connections ahead of time: no harm, and nothing to tell.
    else if (served === 0) this.client.destroy();
  }

  /** A request was let through: its body is sent as soon as there is a connection. */
  begin(exchange: Exchange): void {
    this.exchange = exchange;
    exchange.open();
    if (exchange.isOpen) this.requests.release();
  }

  /** The request that waited can be sent. */
  onOpen(): void {
    this.requests.release();
    this.proceed();
  }

  /** The response is whole, and so is the request; or the connection cannot go on. */
  onFinished(closes: boolean): void {
    this.finish(closes);
    this.proceed();
  }

  /** Answers in the proxy's own name; the connection goes on where the rest of the request can be told from the next. */
  answer(answer: Answer): void {
    const { client, requests } = this;
    const { head } = requests;
    const isCheap = requests.isBodyDone || (!head.chunked && head.contentLength <= MAX_DISCARDED && !head.expectsContinue);
    const closes = !isCheap || head.minor === 0 || head.wantsClose;
    const flushed = client.write(renderAnswer(answer, { closes, isHead: head.isHead }));
    this.finish(closes);
    if (flushed) return;
    // Who asks on and on and reads no answer has to wait.
    requests.isHeld = true;
    client.onDrain(() => this.unhold());
  }

  /** Answers what is no request, and ends. A response that has begun cannot be answered any more. */
  refuse(status: 400 | 408 | 431, complaint: string): void {
    refuseMalformed(this, complaint);
    this.exchange?.abort();
    if (this.exchange?.hasResponse === true) return this.destroy(true);
    this.client.write(renderAnswer(makeAnswer(status, `AgentBox refuses this request: ${complaint}`), { closes: true, isHead: false }));
    this.exchange = undefined;
    this.linger();
  }

  /** Goes on with what was kept. */
  proceed(): void {
    const { requests } = this;
    if (requests.isReading) return;
    requests.readKept();
    this.exchange?.flush();
    if (this.isEnded) this.endAfterClient();
    if (!this.isPaused || !requests.wantsMore) return;
    this.isPaused = false;
    this.client.resume();
  }

  /** Lets somebody else have the connection; returns what came already. */
  detach(): Buffer {
    this.listener.forget(this);
    return this.requests.leave();
  }

  destroy(reset = false): void {
    this.requests.leave();
    this.client.destroy(reset);
  }

  private unhold(): void {
    this.requests.isHeld = false;
    this.proceed();
  }

  private finish(closes: boolean): void {
    this.exchange = undefined;
    this.served += 1;
    if (!closes) this.requests.next();
    else if (this.isLast) this.leave();
    else this.linger();
  }

  /** A client that said that this was its last request sends nothing that could still come. */
  private get isLast(): boolean {
    const { head, isBodyDone, keepsBytes } = this.requests;
    return (head.wantsClose || head.minor === 0) && isBodyDone && !keepsBytes;
  }

  private leave(): void {
    this.requests.reading = "drop";
    this.since = this.listener.tick;
    this.client.close();
  }

  /** Says that it ends, and drops what still comes: to close at once would be a reset, which takes the answer back. */
  private linger(): void {
    this.requests.isHeld = false;
    this.requests.reading = "drop";
    this.since = this.listener.tick;
    this.client.end();
  }

  /** The client sends nothing more: what came is served, and then it is over. */
  private endAfterClient(): void {
    const { requests } = this;
    if (requests.isHeld) return;
    if (requests.reading === "discard" || (requests.reading === "head" && !requests.keepsBytes)) this.linger();
    else if (requests.reading === "head") this.refuse(400, "it ends in the middle of its head");
    else if (requests.reading === "body" && !requests.keepsBytes) this.refuse(400, "it ends in the middle of its body");
  }
}
