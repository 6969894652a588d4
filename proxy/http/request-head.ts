import { Authority } from "./authority.ts";
import { ASTERISK, CR, HASH, KINDS, LF, matches, QUESTION, SLASH, SPACE, TOKEN, VISIBLE, ZERO } from "./field-bytes.ts";
import type { FieldKind } from "./field-name.ts";
import { explainByte, type Field, MALFORMED, MessageHead, NEED_MORE } from "./message-head.ts";

/**
 * Forms of a target (RFC 9112 section 3.2): a path, a whole URI, `host:port` for CONNECT, `*` for OPTIONS.
 * `socket` is what some clients ask a proxy for, and is in no RFC: a socket of this machine.
 */
export type TargetForm = "origin" | "absolute" | "authority" | "asterisk" | "socket";

/** Longer than any method that has a name; it goes into the log. */
const MAX_METHOD = 32;
const VERSION = "HTTP/1.";
const COMMON = ["GET", "POST", "HEAD", "PUT", "OPTIONS", "DELETE", "PATCH", "CONNECT"] as const;

/** The head of a request; places count from the head's first byte. */
export class RequestHead extends MessageHead {
  methodStart = 0;
  methodEnd = 0;
  targetStart = 0;
  targetEnd = 0;
  form: TargetForm = "origin";
  isOptions = false;
  isHead = false;
  private isGet = false;
  /** Of a whole URI. */
  scheme: "http" | "https" = "http";
  /** Of a whole URI, or of CONNECT. */
  readonly authority = new Authority();
  /** Where path and query begin; the end of the target where there are none. */
  pathStart = 0;
  readonly host = new Authority();
  hasHost = false;
  /** The line of Host. */
  hostLine = 0;
  /** The client waits for word before it sends the body. */
  expectsContinue = false;
  /** It asks for a socket of this machine, in a field of its own. */
  namesSocket = false;

  override reset(): void {
    super.reset();
    this.hasHost = false;
    this.expectsContinue = false;
    this.namesSocket = false;
  }

  get hasBody(): boolean {
    return this.chunked || this.contentLength > 0;
  }

  protected override readStart(bytes: Uint8Array, from: number, limit: number): number {
    let at = from;
    // RFC 9112 section 2.2: one empty line ahead is left over from a client's body.
    if (bytes[at] === CR && at < limit) {
      if (at + 1 >= limit) return NEED_MORE;
      if (bytes[at + 1] !== LF) return this.fail("it holds a CR that ends no line");
      at += 2;
    }
    this.methodStart = at - from;
    const most = Math.min(limit, at + MAX_METHOD + 1);
    while (at < most && ((KINDS[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at += 1;
    if (at - from - this.methodStart > MAX_METHOD) return this.fail("its method is too long");
    if (at >= limit) return NEED_MORE;
    if (bytes[at] !== SPACE || at - from === this.methodStart) return this.fail(`its method is none: ${explainByte(bytes[at])}`);
    this.methodEnd = at - from;
    at += 1;
    const start = at;
    while (at < limit && ((KINDS[bytes[at] ?? 0] ?? 0) & VISIBLE) !== 0 && bytes[at] !== HASH) at += 1;
    if (at >= limit) return NEED_MORE;
    if (bytes[at] === HASH) return this.fail("its target has a fragment");
    if (bytes[at] !== SPACE || at === start) return this.fail(`its target is none: ${explainByte(bytes[at])}`);
    this.targetStart = start - from;
    this.targetEnd = at - from;
    const next = this.readVersion(bytes, at + 1, limit);
    return next <= 0 || this.readTarget(bytes, from, start, at) ? next : MALFORMED;
  }

  protected override takeOwn(kind: FieldKind, field: Field): boolean {
    const { bytes, from, start, valueStart, valueEnd } = field;
    if (kind === "host") {
      if (this.hasHost) return this.refuse("it has several Host fields");
      if (!this.host.read(bytes, from, valueStart, valueEnd)) return this.refuse("its Host is no host");
      this.hasHost = true;
      this.hostLine = start - from;
    } else if (kind === "expect") {
      this.expectsContinue = true;
    } else if (kind === "unix-socket") {
      this.namesSocket = true;
    }
    return true;
  }

  protected override check(): boolean {
    // RFC 9112 section 3.2: without Host nobody knows for whom a path is meant.
    if (!this.hasHost && this.minor === 1) return this.refuse("it has no Host");
    if (this.form === "authority" && this.hasBody) return this.refuse("CONNECT has no body");
    // RFC 6455 section 4.1: only GET changes to WebSocket. What else asks for it goes on without.
    if (!this.isGet || this.hasBody) this.isUpgrade = false;
    return true;
  }

  private readVersion(bytes: Uint8Array, start: number, limit: number): number {
    for (let at = 0; at < VERSION.length; at += 1) {
      if (start + at >= limit) return NEED_MORE;
      if (bytes[start + at] !== VERSION.charCodeAt(at)) return this.fail("its version is neither HTTP/1.1 nor HTTP/1.0");
    }
    const at = start + VERSION.length;
    if (at >= limit) return NEED_MORE;
    const minor = (bytes[at] ?? 0) - ZERO;
    if (minor !== 0 && minor !== 1) return this.fail("its version is neither HTTP/1.1 nor HTTP/1.0");
    if (at + 2 >= limit && (at + 1 >= limit || bytes[at + 1] === CR)) return NEED_MORE;
    if (bytes[at + 1] !== CR || bytes[at + 2] !== LF) return this.fail("its first line does not end behind the version");
    this.minor = minor;
    return at + 3;
  }

  private readTarget(bytes: Uint8Array, from: number, start: number, end: number): boolean {
    const methodStart = from + this.methodStart;
    const methodLength = this.methodEnd - this.methodStart;
    this.pathStart = start - from;
    this.isGet = methodLength === 3 && isMethod(bytes, methodStart, "GET");
    this.isHead = methodLength === 4 && isMethod(bytes, methodStart, "HEAD");
    this.isOptions = methodLength === 7 && isMethod(bytes, methodStart, "OPTIONS");
    if (methodLength === 7 && isMethod(bytes, methodStart, "CONNECT")) {
      this.form = "authority";
      if (!this.authority.read(bytes, from, start, end) || this.authority.port === 0) return this.refuse("the target of CONNECT is not host:port");
      return true;
    }
    if (bytes[start] === SLASH) {
      this.form = "origin";
      return true;
    }
    if (bytes[start] === ASTERISK && end === start + 1) {
      this.form = "asterisk";
      return this.isOptions || this.refuse("the target * is for OPTIONS only");
    }
    return this.readUri(bytes, from, start, end);
  }

  private readUri(bytes: Uint8Array, from: number, start: number, end: number): boolean {
    const length = end - start;
    if ((length > 5 && matches(bytes, start, "unix:")) || (length > 10 && matches(bytes, start, "http+unix:"))) {
      this.form = "socket";
      return true;
    }
    const isHttp = length > 7 && matches(bytes, start, "http://");
    if (!isHttp && !(length > 8 && matches(bytes, start, "https://"))) return this.refuse("its target is neither a path nor an http:// URI");
    this.form = "absolute";
    this.scheme = isHttp ? "http" : "https";
    const host = start + (isHttp ? 7 : 8);
    let at = host;
    while (at < end && bytes[at] !== SLASH && bytes[at] !== QUESTION) at += 1;
    this.pathStart = at - from;
    return this.authority.read(bytes, from, host, at) || this.refuse("the host of its target is none");
  }
}

/** The method as text: one of those that everybody uses without a copy. */
export function readMethod(head: RequestHead, bytes: Buffer, from: number): string {
  const [start, end] = [from + head.methodStart, from + head.methodEnd];
  for (const method of COMMON) if (method.length === end - start && isMethod(bytes, start, method)) return method;
  return bytes.toString("latin1", start, end);
}

function isMethod(bytes: Uint8Array, start: number, method: string): boolean {
  for (let at = 0; at < method.length; at += 1) if (bytes[start + at] !== method.charCodeAt(at)) return false;
  return true;
}
