import { parseHostPort } from "../../policy/host-name.ts";
import { quote } from "../../policy/parsed.ts";

/** Names and values in turn, as Node hands them over. */
export type Fields = readonly string[];

/** The head of a request in HTTP/2. `names` are all that it calls its host. */
export type Http2Head = { method: string; path: string; names: readonly string[]; /** Those that are handed on, without pseudo-header fields. */ fields: Fields };

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// RFC 9112 section 3.2.1: the same that a head of HTTP/1.1 may hold, since the server may speak that.
const PATH = /^\/[\x21\x22\x24-\x7e]*$/;
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const LINE_BREAK = /[\u0000\r\n]/;
/** Fields that concern one connection only (RFC 9110 section 7.6.1, RFC 9113 section 8.2.2), in both directions. */
const HOP: ReadonlySet<string> = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "te", "http2-settings"]);
/** Written anew from the name that was judged. */
const HOST: ReadonlySet<string> = new Set(["host"]);
const NONE: ReadonlySet<string> = new Set();

/** Reads the head of a request, strictly; `complaint` says what is malformed. What nghttp2 refuses does not come here. */
export function readHttp2Head(raw: Fields): { ok: true; head: Http2Head } | { ok: false; complaint: string } {
  const { pseudo, fields, hosts } = sortFields(raw);
  const [method, scheme, path, authority] = [":method", ":scheme", ":path", ":authority"].map((name) => pseudo.get(name));
  const names = [...(authority === undefined ? [] : [authority]), ...hosts];
  const wrong = names.find((name) => !parseHostPort(name).ok);
  if (method === undefined || !TOKEN.test(method)) return malformed("its method is none");
  if (method === "CONNECT" || pseudo.has(":protocol")) return malformed(`${method} is for a proxy, and this is none; WebSocket is spoken over HTTP/1.1 here`);
  if (scheme !== "https") return malformed(`its scheme is ${quote(scheme ?? "")} and it came by https`);
  if (path === undefined || !(PATH.test(path) || (path === "*" && method === "OPTIONS"))) return malformed("its path is none");
  if (names.length === 0) return malformed("it has no :authority");
  if (hosts.length > 1) return malformed("it has several Host");
  if (wrong !== undefined) return malformed(`its host ${quote(wrong)} is no host`);
  // Node hands fields on in one string, with NUL between them.
  if (fields.some((word) => LINE_BREAK.test(word))) return malformed("a field holds a line break or NUL");
  return { ok: true, head: { method, path, names, fields } };
}

/** Leaves out what concerns one connection only; `named` are more of such names. */
export function dropHopFields(raw: Fields, named: ReadonlySet<string> = NONE): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at]?.toLowerCase(), raw[at + 1]];
    if (name.startsWith(":") || name.startsWith("proxy-") || named.has(name)) continue;
    // RFC 9113 section 8.2.2: the one thing that TE may say in HTTP/2.
    if (!HOP.has(name) || (name === "te" && value.toLowerCase() === "trailers")) kept.push(name, value);
  }
  return kept;
}

/** The value of a field; the last one where there are several. */
export function findField(fields: Fields, name: string): string | undefined {
  const at = fields.findLastIndex((word, index) => index % 2 === 0 && word.toLowerCase() === name);
  return at < 0 ? undefined : fields[at + 1];
}

/** About as many bytes as they are in HTTP/1.1, for the count of what was carried. */
export function countBytes(fields: Fields): number {
  return fields.reduce((sum, word) => sum + word.length + 2, 0);
}

function sortFields(raw: Fields): { pseudo: ReadonlyMap<string, string>; fields: string[]; hosts: string[] } {
  const pseudo = new Map<string, string>();
  const hosts: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    if (name.startsWith(":")) pseudo.set(name, value);
    else if (name === "host") hosts.push(value);
  }
  return { pseudo, fields: dropHopFields(raw, HOST), hosts };
}

function malformed(complaint: string): { ok: false; complaint: string } {
  return { ok: false, complaint };
}
