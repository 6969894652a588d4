import { type HelloRead, readClientHello } from "../tls/client-hello.ts";

/**
 * What a client begins a tunnel with. `need-more` tells how many bytes there have to be before it is worth
 * looking again, and whether what came so far may already go on should nothing more come.
 */
export type Flight = Exclude<HelloRead, { kind: "not-tls" | "need-more" }> | { kind: "need-more"; bytes: number; harmless: boolean } | { kind: "http" | "http2" | "other" };

const [NUL, TAB, LF, CR, SPACE] = [0x00, 0x09, 0x0a, 0x0d, 0x20] as const;
/** A first line that is longer is taken for HTTP, whose reader refuses it. */
const MAX_LINE = 4096;
/** A token (RFC 9110 section 5.6.2), what lenient servers take for a blank (RFC 9112 section 3), and the rest of the line. */
const LINE = /^(?<method>[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t\v\f\r]+(?<rest>[^]*)$/;
const TOKEN_SO_FAR = /^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/;
const PROXY_SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH"]);

/**
 * Tells what the first bytes are. HTTP is whatever a lenient server could take for a request, so that it is
 * read strictly and judged; only what cannot be one is something other.
 */
export function readFirstFlight(bytes: Buffer): Flight {
  const hello = readClientHello(bytes);
  if (hello.kind === "need-more") return { ...hello, harmless: false };
  if (hello.kind !== "not-tls") return hello;
  const flight = readLine(bytes);
  // Servers differ in what they overlook in front of a request; its reader overlooks nothing.
  return flight.kind === "other" && (isVersionNamed(bytes) || isProxyHeader(bytes)) ? { kind: "http" } : flight;
}

function readLine(bytes: Buffer): Flight {
  let start = 0;
  // RFC 9112 section 2.2: servers pass over empty lines ahead of a request, some also over blanks.
  while (start < bytes.length && isBlank(bytes[start])) start += 1;
  const lineEnd = bytes.indexOf(LF, start);
  const text = bytes.toString("latin1", start, lineEnd < 0 ? Math.min(bytes.length, start + MAX_LINE) : lineEnd);
  const line = LINE.exec(text)?.groups;
  if (line === undefined && (lineEnd >= 0 || !TOKEN_SO_FAR.test(text))) return { kind: "other" };
  // No server takes a NUL for a part of a request; git's own protocol sends one instead of a line end.
  if (text.includes(String.fromCharCode(NUL))) return { kind: "other" };
  if (lineEnd >= 0) return { kind: recogniseRequest(line?.["method"] ?? "", line?.["rest"] ?? "") };
  return bytes.length <= MAX_LINE ? { kind: "need-more", bytes: bytes.length + 1, harmless: true } : { kind: "http" };
}

function isVersionNamed(bytes: Buffer): boolean {
  return /[^A-Za-z0-9]HTTP\/[0-9]/i.test(bytes.toString("latin1", 0, MAX_LINE));
}

/** The line or signature by which one proxy tells another who its client is: a server that takes it reads a request behind it. */
function isProxyHeader(bytes: Buffer): boolean {
  return bytes.toString("latin1", 0, 6) === "PROXY " || bytes.subarray(0, PROXY_SIGNATURE.length).equals(PROXY_SIGNATURE);
}

function recogniseRequest(method: string, rest: string): "http" | "http2" | "other" {
  // RFC 9113 section 3.4: the preface of HTTP/2, which is made to look like a request.
  if (method === "PRI" && rest.includes("HTTP/2")) return "http2";
  if (/HTTP\//i.test(rest)) return "http";
  // HTTP/0.9 has no version: a method and a path.
  return METHODS.has(method.toUpperCase()) && /^(?:\/|https?:)/i.test(rest) ? "http" : "other";
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || (byte !== undefined && byte >= TAB && byte <= CR);
}
