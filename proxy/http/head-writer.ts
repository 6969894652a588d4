import type { Host } from "../../policy/host-name.ts";
import { renderHostPort } from "../../policy/proxy-words.ts";
import { QUESTION } from "./field-bytes.ts";
import type { RequestHead } from "./request-head.ts";
import type { ResponseHead } from "./response-head.ts";

const UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
const CLOSE = "Connection: close\r\n";
const DEFAULT_PORTS = { http: 80, https: 443 } as const;
/** ` HTTP/1.1` and the end of the line. */
const VERSION_LINE = 11;
const ONE = 0x31;
const MINOR_AT = 7;
/** More than all words that are put between. */
const WORDS = 16;
/** Copying byte by byte is faster up to here. */
const SHORT = 48;

/** Where a request goes: the canonical authority, and what only the site's proxy is told. */
export type Destination = { authority: string; proxy: { authorization: string } | undefined };

/** Host and port as they stand in Host: the port only where the scheme does not imply it. */
export function renderAuthority(host: Host, port: number, scheme: "http" | "https"): string {
  const text = renderHostPort({ host, port });
  return port === DEFAULT_PORTS[scheme] ? text.slice(0, text.lastIndexOf(":")) : text;
}

/** A head in the making: stretches of the one that came, and words of ours between them. */
class HeadWriter {
  readonly out: Buffer;
  at = 0;
  private readonly bytes: Buffer;
  private readonly from: number;

  constructor(bytes: Buffer, from: number, size: number) {
    this.bytes = bytes;
    this.from = from;
    this.out = Buffer.allocUnsafe(size);
  }

  copy(start: number, end: number): void {
    const { out, bytes, from } = this;
    if (end - start > SHORT) bytes.copy(out, this.at, from + start, from + end);
    else for (let at = start, to = this.at; at < end; at += 1, to += 1) out[to] = bytes[from + at] ?? 0;
    this.at += end - start;
  }

  write(text: string): void {
    this.at += this.out.write(text, this.at, "latin1");
  }

  finish(): Buffer {
    // What does not fit is not written, and another head would be what is left.
    if (this.at > this.out.length) throw new Error("a head is larger than was counted");
    return this.at === this.out.length ? this.out : this.out.subarray(0, this.at);
  }

  /** Copies the fields from `start` to `end`, without the lines that go no further. */
  copyUncut(cuts: readonly number[], start: number, end: number): void {
    let at = start;
    for (let index = 0; index < cuts.length; index += 2) {
      const [line, next] = [cuts[index] ?? 0, cuts[index + 1] ?? 0];
      if (next <= at) continue;
      if (line >= end) break;
      this.copy(at, line);
      at = next;
    }
    this.copy(at, end);
  }
}

/**
 * Makes the head that a request goes on with: the target in the form that the next one needs, Host canonical,
 * without the fields of this connection; everything else byte for byte.
 */
export function writeRequestHead(head: RequestHead, bytes: Buffer, from: number, length: number, { authority, proxy }: Destination): Buffer {
  const { host, cuts, targetEnd, pathStart } = head;
  const fieldsAt = targetEnd + VERSION_LINE;
  // What goes away is counted, so that what is made has the right size at once; where words are added they are few.
  const kept = length - head.methodStart - (pathStart - head.targetStart) - countCut(cuts);
  const isWritten = head.hasHost && holdsText(bytes, from + host.start, from + host.end, authority);
  const added = isWritten ? 0 : authority.length + WORDS;
  const writer = new HeadWriter(bytes, from, kept + added + (proxy === undefined ? 0 : authority.length + proxy.authorization.length) + (head.isUpgrade || pathStart === targetEnd || proxy !== undefined || bytes[from + pathStart] === QUESTION ? UPGRADE.length + WORDS : 0));
  writer.copy(head.methodStart, head.methodEnd + 1);
  if (proxy !== undefined) writer.write(`http://${authority}`);
  const isPath = pathStart < targetEnd && head.form !== "asterisk";
  if (isPath && bytes[from + pathStart] === QUESTION) writer.write("/");
  // RFC 9112 section 3.2.4: OPTIONS for a host without a path is for the server as a whole.
  if (!isPath && !head.isOptions) writer.write("/");
  else if (!isPath && proxy === undefined) writer.write("*");
  writer.copy(isPath ? pathStart : targetEnd, fieldsAt);
  // RFC 9110 section 9.3.8: what TRACE carries comes back to whoever asked.
  if (proxy !== undefined && bytes.toString("latin1", from + head.methodStart, from + head.methodEnd) !== "TRACE") writer.write(proxy.authorization);
  if (!head.hasHost) writer.write(`Host: ${authority}\r\n`);
  if (head.isUpgrade) writer.write(UPGRADE);
  if (isWritten || !head.hasHost) {
    writer.copyUncut(cuts, fieldsAt, length);
  } else {
    writer.copyUncut(cuts, fieldsAt, host.start);
    writer.write(authority);
    writer.copyUncut(cuts, host.end, length);
  }
  return writer.finish();
}

function countCut(cuts: readonly number[]): number {
  let count = 0;
  for (let index = 0; index < cuts.length; index += 2) count += (cuts[index + 1] ?? 0) - (cuts[index] ?? 0);
  return count;
}

function holdsText(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let at = 0; at < text.length; at += 1) if (bytes[start + at] !== text.charCodeAt(at)) return false;
  return true;
}

/** Whether the head of a response may go on as it came. */
export function isUnchanged(head: ResponseHead, closes: boolean): boolean {
  return head.cuts.length === 0 && !closes && head.minor === 1;
}

/** Makes the head that a response goes on with, and copies `extra` bytes behind it: the first of its body. */
export function writeResponseHead(head: ResponseHead, bytes: Buffer, from: number, length: number, { closes, extra }: { closes: boolean; extra: number }): Buffer {
  const writer = new HeadWriter(bytes, from, length + extra - countCut(head.cuts) + (closes ? CLOSE.length : 0) + (head.status === 101 ? UPGRADE.length : 0));
  writer.copyUncut(head.cuts, 0, length - 2);
  // RFC 9112 section 2.3: the version is that of whoever sends it.
  writer.out[MINOR_AT] = ONE;
  if (closes) writer.write(CLOSE);
  if (head.status === 101) writer.write(UPGRADE);
  writer.copy(length - 2, length + extra);
  return writer.finish();
}
