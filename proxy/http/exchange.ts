import type { Upstream } from "../../policy/proxy-words.ts";
import type { Admitted } from "../access/access.ts";
import type { Flow, FlowInput } from "../access/flows.ts";
import type { Asked } from "../access/judgement.ts";
import { relay } from "../net/relay.ts";
import { type Answer, describeFailure, describeOutcome } from "./answer.ts";
import type { HttpSession } from "./http-session.ts";
import type { RequestHead } from "./request-head.ts";
import type { Requester, UpstreamConnection } from "./upstream-connection.ts";

/** Methods that may be sent twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
/** A body up to this size is written together with the head. */
const JOINED = 16 * 1024;

export type ExchangeInput = { asked: Asked; admitted: Admitted; /** Of connections to its server. */ key: string; /** The head as it is sent, to the site's proxy where there is one. */ written: Buffer; site: Upstream | undefined; /** Bytes of the head as it came. */ length: number };

/** One request that was let through, and its response. */
export class Exchange implements FlowInput, Requester {
  readonly asked: Asked;
  admitted: Admitted;
  readonly isHead: boolean;
  readonly minor: number;
  readonly isUpgrade: boolean;
  closes: boolean;
  /** Its request may be sent: there is a connection. */
  isOpen = false;
  private readonly session: HttpSession;
  private readonly head: Buffer;
  private readonly site: Upstream | undefined;
  private readonly key: string;
  private readonly isRepeatable: boolean;
  private unsent: Buffer | undefined;
  private upstream: UpstreamConnection | undefined;
  private flow: Flow | undefined;
  private bytesUp: number;
  private bytesDown = 0;
  /** Bytes of the body of a response that broke off. */
  private brokenAt = 0;
  /** A final response has begun. */
  hasResponse = false;
  private isResponseDone = false;
  private isRequestDone: boolean;
  private isReusable = false;
  private isStuck = false;
  private isOver = false;
  private isRelayed = false;

  constructor(session: HttpSession, { hasBody, isHead, isUpgrade, minor, wantsClose }: RequestHead, { asked, admitted, key, written, site, length }: ExchangeInput) {
    this.session = session;
    this.asked = asked;
    this.admitted = admitted;
    this.head = written;
    this.site = site;
    this.key = key;
    this.isHead = isHead;
    this.minor = minor;
    this.isUpgrade = isUpgrade;
    this.closes = wantsClose || minor === 0;
    this.isRepeatable = !hasBody && IDEMPOTENT.has(asked.method ?? "");
    this.isRequestDone = !hasBody;
    this.bytesUp = length;
  }

  /**
   * Finds a connection. A used one may be closed at the very moment that the request is sent: a request that
   * cannot be repeated takes one only where its client has used its own connection before, and so reckons with that.
   */
  open(): void {
    const { context, pool } = this.session.listener;
    if (context.access.policy.epoch !== this.admitted.epoch) return void this.judgeAgain();
    const mayReuse = this.minor === 1 && (this.isRepeatable || this.session.served > 0);
    const idle = mayReuse ? pool.take(this.key, this.admitted) : undefined;
    if (idle === undefined) void this.dial();
    else this.attach(idle);
  }

  /** Sends a part of the body; false where it could not be sent at once. */
  send(bytes: Buffer): boolean {
    this.bytesUp += bytes.length;
    const { unsent, upstream } = this;
    if (upstream === undefined) return true;
    if (unsent === undefined) return upstream.connection.writeRead(bytes);
    this.unsent = undefined;
    if (bytes.length <= JOINED) return upstream.connection.write(Buffer.concat([unsent, bytes]));
    upstream.connection.write(unsent);
    return upstream.connection.writeRead(bytes);
  }

  /** Sends the head, should it still wait for the first of the body. */
  flush(): void {
    if (this.unsent === undefined) return;
    this.upstream?.connection.write(this.unsent);
    this.unsent = undefined;
  }

  /** Calls once what was sent is on its way. */
  onSent(action: () => void): void {
    this.upstream?.connection.onDrain(action);
  }

  /** The request came whole. It is done with when the system has taken it: servers answer early, and read on. */
  finishRequest(): void {
    if (this.upstream === undefined || this.upstream.connection.socket.writableLength === 0) this.onRequestSent();
    else this.upstream.connection.onDrain(() => this.onRequestSent());
  }

  /** Gives it up: the client is gone, or what it sends is malformed. */
  abort(): void {
    this.isOver = true;
    this.upstream?.destroy(true);
    this.endFlow();
  }

  /** A new policy does not let it through any more. */
  cut(): void {
    this.session.destroy(true);
    // A relay tells at its end what it carried.
    if (this.isRelayed) this.upstream?.destroy(true);
    else this.abort();
  }

  forward(bytes: Buffer): boolean {
    this.bytesDown += bytes.length;
    this.session.activeAt = this.session.listener.tick;
    if (this.session.client.writeRead(bytes)) return true;
    if (this.isStuck) return false;
    this.isStuck = true;
    this.session.client.onDrain(() => {
      this.isStuck = false;
      if (this.isOver) return;
      // After its response too: who uses it next wants to hear of it, and of its end.
      this.upstream?.connection.resume();
      if (this.isResponseDone) this.tryFinish();
    });
    return false;
  }

  onResponse(closes: boolean): void {
    this.hasResponse = true;
    this.closes = closes;
  }

  onResponseDone(reusable: boolean): void {
    this.isResponseDone = true;
    this.isReusable = reusable && this.minor === 1;
    this.tryFinish();
  }

  onResponseBroken(why: string, began: boolean): void {
    if (this.isOver) return;
    const { upstream } = this;
    const wasStale = !began && upstream?.isReused === true;
    this.brokenAt = upstream?.bodyBytes ?? 0;
    this.upstream = undefined;
    upstream?.destroy(true);
    // It was closed before it saw the request (RFC 9112 section 9.3.1): another connection is as good.
    if (wasStale && this.isRepeatable) return void this.dial();
    if (!wasStale && !this.hasResponse) return this.answer(describeFailure(this.admitted, { status: 502, why: `the server ${why}` }));
    // The client sees what it would see without a proxy, and knows best whether it may ask again.
    this.session.destroy(this.hasResponse);
    this.abort();
  }

  onGone(): void {
    if (this.isOver || !this.isResponseDone) return;
    this.isReusable = false;
    this.closes = true;
    this.isRequestDone = true;
    this.tryFinish();
  }

  onUpgraded(rest: Buffer): void {
    const { upstream, session } = this;
    if (upstream === undefined) return;
    const { client } = session;
    this.isOver = true;
    this.isRelayed = true;
    const early = session.detach();
    const [inBefore, outBefore] = [client.bytesIn, client.bytesOut];
    if (rest.length > 0) client.writeRead(rest);
    if (early.length > 0) upstream.connection.write(early);
    relay(client, upstream.connection, () => {
      this.bytesUp += early.length + client.bytesIn - inBefore;
      this.bytesDown += client.bytesOut - outBefore;
      this.endFlow();
    });
  }

  private onRequestSent(): void {
    this.isRequestDone = true;
    this.tryFinish();
  }

  private async dial(): Promise<void> {
    const { context, pool } = this.session.listener;
    const { epoch } = this.admitted;
    const dialled = await this.session.listener.dial(this.admitted, this.session.place, this.site);
    if (this.isOver) return dialled.ok ? dialled.connection.destroy() : undefined;
    if (!dialled.ok) return this.answer(describeFailure(this.admitted, dialled));
    if (context.access.policy.epoch === epoch) {
      this.attach(pool.adopt(dialled.connection, this.key, epoch));
      return this.session.onOpen();
    }
    dialled.connection.destroy();
    await this.judgeAgain();
  }

  /** Another policy came into force before there was a connection. */
  private async judgeAgain(): Promise<void> {
    const outcome = await this.session.listener.context.access.admit(this.asked);
    if (this.isOver) return;
    if (!outcome.ok) return this.answer(describeOutcome(this.asked, outcome));
    this.admitted = outcome;
    await this.dial();
  }

  /** Writes down what it carried; what an opened TLS held with the sizes of its bodies. */
  private endFlow(): void {
    const { session, bytesUp, bytesDown } = this;
    const isMeasured = session.scheme === "https" && !this.isRelayed;
    this.flow?.end({ bytesUp, bytesDown, bodies: isMeasured ? { up: session.bodyBytes, down: this.upstream?.bodyBytes ?? this.brokenAt } : undefined });
  }

  private attach(upstream: UpstreamConnection): void {
    this.upstream = upstream;
    upstream.serve(this);
    this.flow ??= this.session.listener.context.flows.begin(this);
    this.isOpen = true;
    if (this.isRequestDone) upstream.connection.write(this.head);
    else this.unsent = this.head;
  }

  private tryFinish(): void {
    if (!this.isResponseDone || !this.isRequestDone || this.isStuck || this.isOver) return;
    this.isOver = true;
    this.endFlow();
    const { upstream, session } = this;
    // One that still has to send is none to keep: what it sends lies in a buffer that the client is read into.
    if (upstream !== undefined && this.isReusable && upstream.connection.socket.writableLength === 0) session.listener.pool.give(upstream, session.listener.tick);
    else upstream?.destroy();
    session.onFinished(this.closes);
  }

  private answer(answer: Answer): void {
    this.abort();
    this.session.answer(answer);
    this.session.proceed();
  }
}
