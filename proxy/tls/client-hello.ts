import { LIMITS } from "../web-context.ts";
import { Cursor } from "./cursor.ts";

/** What a client says of the server that it wants, before anything is encrypted. `ech`: the real name may be another, hidden one. `end` is the place behind its records. */
export type Hello = { kind: "hello"; sni: string | undefined; alpn: readonly string[]; ech: boolean; end: number };

/** `need-more` tells how many bytes there have to be before it is worth looking again. */
export type HelloRead = Hello | { kind: "need-more"; bytes: number } | { kind: "not-tls" } | { kind: "malformed"; what: string };

type Malformed = Extract<HelloRead, { kind: "malformed" }>;

const HANDSHAKE = 22;
const [FIRST_TYPE, LAST_TYPE] = [20, 24] as const;
const MAJOR = 3;
/** Some servers read records of any major version below 16. */
const MAX_MAJOR = 15;
const CLIENT_HELLO = 1;
const MAX_RECORD = 16_384;
const TOO_LARGE = "the hello is too large";
const RECORD_HEAD = 5;
const MESSAGE_HEAD = 4;
const [SERVER_NAME, ALPN, ENCRYPTED_HELLO] = [0, 16, 0xfe0d] as const;
const HOST_NAME = 0;
/** Of about sixty that exist a client sends twenty. */
const MAX_EXTENSIONS = 100;
/** Names of other signs would be read differently by the server (RFC 6066 section 3: ASCII, no trailing parts). */
const NAME = /^[A-Za-z0-9._-]{1,255}$/;

/**
 * Reads the first TLS record or records of a client (RFC 8446 sections 4.1.2 and 5.1). Strict: what servers
 * could understand in two ways, or take for TLS although it begins in another way, is malformed.
 */
export function readClientHello(bytes: Buffer): HelloRead {
  const other = recogniseTls(bytes);
  if (other !== undefined) return other;
  // Parts of the message, how long they are together, and how long they will be.
  let [parts, length, size]: [Buffer[], number, number | undefined] = [[], 0, undefined];
  for (let at = 0; ; ) {
    if (bytes.length < at + RECORD_HEAD) return { kind: "need-more", bytes: at + RECORD_HEAD + (size === undefined ? 1 : size - length) };
    const end = at + RECORD_HEAD + bytes.readUInt16BE(at + 3);
    if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== MAJOR) return malformed("a record of another kind inside the hello");
    if (end === at + RECORD_HEAD || end > at + RECORD_HEAD + MAX_RECORD) return malformed("a record of a wrong length");
    if (end > LIMITS.helloBytes) return malformed(TOO_LARGE);
    if (bytes.length < end) return { kind: "need-more", bytes: end };
    parts.push(bytes.subarray(at + RECORD_HEAD, end));
    length += end - at - RECORD_HEAD;
    at = end;
    if (size === undefined && length >= MESSAGE_HEAD) {
      parts = [join(parts)];
      if (parts[0]?.[0] !== CLIENT_HELLO) return malformed("the first message is no hello");
      size = MESSAGE_HEAD + (parts[0]?.readUIntBE(1, 3) ?? 0);
      if (size > LIMITS.helloBytes) return malformed(TOO_LARGE);
    }
    if (size === undefined || length < size) continue;
    return length === size ? readMessage(join(parts), end) : malformed("bytes behind the hello in its record");
  }
}

function join(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
}

/** Says what it is where it is no hello that could be read; undefined where it begins like one. */
function recogniseTls(bytes: Buffer): HelloRead | undefined {
  const [type, major] = bytes;
  if (type === undefined) return { kind: "need-more", bytes: 1 };
  if (type >= 0x80) return recogniseSsl2(bytes);
  if (type < FIRST_TYPE || type > LAST_TYPE) return { kind: "not-tls" };
  if (major === undefined) return { kind: "need-more", bytes: 2 };
  if (major > MAX_MAJOR) return { kind: "not-tls" };
  // Servers pass over alerts and the like ahead of a hello.
  return type === HANDSHAKE && major === MAJOR ? undefined : malformed(`a record of type ${type} and version ${major} ahead of the hello`);
}

/** Recognises the hello of SSL 2, which names no server and which servers still read (RFC 5246 appendix E.2). */
function recogniseSsl2(bytes: Buffer): HelloRead {
  const [first = 0, , type, major] = bytes;
  if (first > 0xc4 || (type !== undefined && type !== CLIENT_HELLO) || (major !== undefined && major !== MAJOR)) return { kind: "not-tls" };
  return major === undefined ? { kind: "need-more", bytes: bytes.length + 1 } : malformed("a hello of SSL 2");
}

function readMessage(message: Buffer, end: number): Hello | Malformed {
  const body = new Cursor(message, MESSAGE_HEAD, message.length);
  // Version and random.
  body.skip(2 + 32);
  const session = body.vector(1);
  const suites = body.vector(2);
  const compressions = body.vector(1);
  if (body.broken || session.left > 32 || suites.left === 0 || suites.left % 2 === 1 || compressions.left === 0) return malformed("the hello's head is not whole");
  const hello: Hello = { kind: "hello", sni: undefined, alpn: [], ech: false, end };
  if (body.left === 0) return hello;
  const extensions = body.vector(2);
  if (body.broken || body.left > 0) return malformed("the extensions do not fill the hello");
  const seen: number[] = [];
  while (extensions.left > 0) {
    const type = extensions.number(2);
    const content = extensions.vector(2);
    if (extensions.broken) return malformed("an extension goes beyond the hello");
    // RFC 8446 section 4.2: none twice. A server might believe the other one.
    if (seen.includes(type)) return malformed(`extension ${type} stands there twice`);
    if (seen.push(type) > MAX_EXTENSIONS) return malformed("there are too many extensions");
    const what = readExtension(type, content, hello);
    if (what !== undefined) return malformed(what);
  }
  return hello;
}

function readExtension(type: number, content: Cursor, hello: Hello): string | undefined {
  if (type === SERVER_NAME) return readServerName(content, hello);
  if (type === ALPN) return readProtocols(content, hello);
  if (type !== ENCRYPTED_HELLO) return undefined;
  const kind = content.number(1);
  if (content.broken || kind > 1) return "the encrypted hello is not right";
  hello.ech ||= kind === 0;
  return undefined;
}

/** RFC 6066 section 3: a list, of which no server takes more than one name. */
function readServerName(content: Cursor, hello: Hello): string | undefined {
  const list = content.vector(2);
  const type = list.number(1);
  const name = list.vector(2);
  if (content.broken || list.broken || content.left > 0) return "the server name is not whole";
  if (type !== HOST_NAME) return "the server name is of another type than host_name";
  if (list.left > 0) return "there are several server names";
  const text = name.text();
  if (!NAME.test(text)) return "the server name holds what no host name does";
  hello.sni = text;
  return undefined;
}

/** RFC 7301 section 3.1. */
function readProtocols(content: Cursor, hello: Hello): string | undefined {
  const list = content.vector(2);
  const names: string[] = [];
  while (list.left > 0 && !list.broken) {
    const name = list.vector(1);
    if (name.left === 0) return "an application protocol has no name";
    names.push(name.text());
  }
  if (content.broken || list.broken || content.left > 0 || names.length === 0) return "the application protocols are not whole";
  hello.alpn = names;
  return undefined;
}

function malformed(what: string): Malformed {
  return { kind: "malformed", what };
}
