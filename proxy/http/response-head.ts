import { CR, KINDS, LF, NINE, SPACE, VALUE, ZERO } from "./field-bytes.ts";
import { explainByte, MessageHead, NEED_MORE } from "./message-head.ts";

const VERSION = "HTTP/1.";

/** The head of a response. */
export class ResponseHead extends MessageHead {
  status = 0;

  /** An answer ahead of the real one (RFC 9110 section 15.2). */
  get isInterim(): boolean {
    return this.status < 200;
  }

  /** Whether a body may follow, unless the request was HEAD (RFC 9112 section 6.3). */
  get mayHaveBody(): boolean {
    return this.status >= 200 && this.status !== 204 && this.status !== 304;
  }

  protected override readStart(bytes: Uint8Array, from: number, limit: number): number {
    let at = from;
    for (let sign = 0; sign < VERSION.length; sign += 1, at += 1) {
      if (at >= limit) return NEED_MORE;
      if (bytes[at] !== VERSION.charCodeAt(sign)) return this.fail("it is not HTTP/1");
    }
    // The digit of the version, a space, the status, a space.
    if (at + 6 > limit) return NEED_MORE;
    const minor = (bytes[at] ?? 0) - ZERO;
    if (minor !== 0 && minor !== 1) return this.fail("its version is neither HTTP/1.1 nor HTTP/1.0");
    this.minor = minor;
    this.status = 0;
    for (let digit = at + 2; digit < at + 5; digit += 1) {
      const byte = bytes[digit] ?? 0;
      if (byte < ZERO || byte > NINE) return this.fail("its status is no number of three digits");
      this.status = this.status * 10 + byte - ZERO;
    }
    // Some servers leave the space out where they have no words for the status.
    if (bytes[at + 1] !== SPACE || (bytes[at + 5] !== SPACE && bytes[at + 5] !== CR) || this.status < 100) return this.fail("its status is no number of three digits");
    at += 5;
    while (at < limit && ((KINDS[bytes[at] ?? 0] ?? 0) & VALUE) !== 0) at += 1;
    if (at < limit && bytes[at] !== CR) return this.fail(explainByte(bytes[at]));
    if (at + 1 >= limit) return NEED_MORE;
    return bytes[at + 1] === LF ? at + 2 : this.fail("it holds a CR that ends no line");
  }

  protected override takeOwn(): boolean {
    return true;
  }

  protected override check(): boolean {
    // RFC 9112 section 6.1, RFC 9110 section 8.6: a reader that believed the length would wait for a body that never comes.
    if ((this.isInterim || this.status === 204) && (this.chunked || this.contentLength > 0)) return this.refuse(`it has a length although ${this.status} has no body`);
    return true;
  }
}
