import { KeptBytes } from "../http/kept-bytes.ts";
import type { Connection, Reader } from "../net/connection.ts";
import type { Pump } from "../net/relay.ts";
import type { Hello } from "../tls/client-hello.ts";
import { ANSWER_BYTES, isRetryRequest, readSecondHello } from "../tls/hello-retry.ts";
import { LIMITS } from "../web-context.ts";

/** The two ends of a tunnel and its two directions; `refuse` is told what is wrong with a second hello. */
type Watched = { client: Connection; upstream: Connection; up: Pump; down: Pump; hello: Hello; refuse: (detail: string) => void };

/**
 * Hands a hello on, and holds what the client sends behind it until the server has answered. A server may ask for
 * a second hello (RFC 8446 section 4.1.4), and may believe the name in that one: it has to be the first again.
 * After any other answer no hello counts that is not encrypted.
 */
export class HandshakeWatch implements Reader {
  private readonly watched: Watched;
  private kept: KeptBytes | undefined;
  private isRetrying = false;
  private isEnded = false;

  constructor(watched: Watched) {
    this.watched = watched;
  }

  /** Begins with the client's bytes so far; false if the client has to wait. */
  begin(bytes: Buffer): boolean {
    const { client, upstream, up, down, hello } = this.watched;
    client.handTo(this);
    upstream.handTo(new AnswerReader(upstream, down, (isRetry) => this.goOn(isRetry)));
    if (bytes.length === hello.end) return up.onBytes(bytes);
    up.onBytes(bytes.subarray(0, hello.end));
    return this.onBytes(bytes.subarray(hello.end));
  }

  onBytes(bytes: Buffer): boolean {
    this.kept ??= new KeptBytes();
    this.kept.add(bytes, 0, bytes.length);
    if (this.isRetrying) return this.lookForSecond();
    // Early data may be as long; the rest waits.
    return this.kept.length < LIMITS.helloBytes;
  }

  onEnd(): void {
    this.isEnded = true;
    if (this.isRetrying) this.watched.refuse("the second TLS hello is not whole");
    else if (this.kept === undefined) this.watched.up.onEnd();
  }

  onClose(error: Error | undefined): void {
    this.watched.up.onClose(error);
  }

  private goOn(isRetry: boolean): void {
    this.isRetrying = isRetry;
    if (!isRetry) this.passRest();
    else if (this.isEnded) this.onEnd();
    else if (this.kept !== undefined && this.lookForSecond()) this.watched.client.resume();
  }

  /** Whether to read on. */
  private lookForSecond(): boolean {
    const { hello, refuse } = this.watched;
    const bytes = this.kept?.bytes ?? Buffer.alloc(0);
    const read = readSecondHello(bytes);
    if (read.kind === "need-more" && bytes.length < 2 * LIMITS.helloBytes) return true;
    if (read.kind !== "hello") refuse(`a malformed second TLS hello: ${read.kind === "malformed" ? read.what : "it is too large"}`);
    else if (read.sni !== hello.sni || read.ech !== hello.ech) refuse("a second TLS hello asks for another server name");
    else this.passRest();
    return false;
  }

  private passRest(): void {
    const { client, up } = this.watched;
    client.handTo(up);
    if (this.kept === undefined) return;
    const go = up.onBytes(this.kept.take());
    if (this.isEnded) up.onEnd();
    else if (go) client.resume();
  }
}

/** Hands a server's answer on, and tells as soon as that shows whether it asks for another hello. */
class AnswerReader implements Reader {
  private readonly upstream: Connection;
  private readonly down: Pump;
  private readonly tell: (isRetry: boolean) => void;
  private begun: Buffer | undefined;

  constructor(upstream: Connection, down: Pump, tell: (isRetry: boolean) => void) {
    this.upstream = upstream;
    this.down = down;
    this.tell = tell;
  }

  onBytes(bytes: Buffer): boolean {
    const answer = this.begun === undefined ? bytes : Buffer.concat([this.begun, bytes]);
    const isRetry = isRetryRequest(answer);
    if (isRetry === undefined) this.begun = Buffer.from(answer.subarray(0, ANSWER_BYTES));
    const go = this.down.onBytes(bytes);
    if (isRetry !== undefined) this.settle(isRetry);
    return go;
  }

  onEnd(): void {
    this.settle(false);
    this.down.onEnd();
  }

  onClose(error: Error | undefined): void {
    this.down.onClose(error);
  }

  private settle(isRetry: boolean): void {
    this.upstream.handTo(this.down);
    this.tell(isRetry);
  }
}
