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
  const writer = new HeadWriter(bytes, from, length + 2 * authority.length + (proxy?.authorization.length ?? 0) + 64);
  const fieldsAt = head.targetEnd + VERSION_LINE;
  writer.copy(head.methodStart, head.methodEnd + 1);
  if (proxy !== undefined) writer.write(`http://${authority}`);
  const isPath = head.pathStart < head.targetEnd && head.form !== "asterisk";
  if (isPath && bytes[from + head.pathStart] === QUESTION) writer.write("/");
  // RFC 9112 section 3.2.4: OPTIONS for a host without a path is for the server as a whole.
  if (!isPath && !head.isOptions) writer.write("/");
  else if (!isPath && proxy === undefined) writer.write("*");
  writer.copy(isPath ? head.pathStart : head.targetEnd, fieldsAt);
  if (proxy !== undefined) writer.write(proxy.authorization);
  if (!head.hasHost) writer.write(`Host: ${authority}\r\n`);
  if (head.isUpgrade) writer.write(UPGRADE);
  writer.copyUncut(head.cuts, fieldsAt, head.hasHost ? head.host.start : fieldsAt);
  if (head.hasHost) writer.write(authority);
  writer.copyUncut(head.cuts, head.hasHost ? head.host.end : fieldsAt, length);
  return writer.out.subarray(0, writer.at);
}

/** Whether the head of a response may go on as it came. */
export function isUnchanged(head: ResponseHead, closes: boolean): boolean {
  return head.cuts.length === 0 && !closes && head.minor === 1;
}

/** Makes the head that a response goes on with, and copies `extra` bytes behind it: the first of its body. */
export function writeResponseHead(head: ResponseHead, bytes: Buffer, from: number, length: number, { closes, extra }: { closes: boolean; extra: number }): Buffer {
  const writer = new HeadWriter(bytes, from, length + extra + UPGRADE.length);
  writer.copyUncut(head.cuts, 0, length - 2);
  // RFC 9112 section 2.3: the version is that of whoever sends it.
  writer.out[MINOR_AT] = ONE;
  if (closes) writer.write(CLOSE);
  if (head.status === 101) writer.write(UPGRADE);
  writer.copy(length - 2, length + extra);
  return writer.out.subarray(0, writer.at);
}
