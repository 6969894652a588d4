import { addressFromValue } from "../../policy/address.ts";

/** Reads of a frame: `end` is the place behind it. */
export type FrameRead<T> = { kind: "need-more" } | { kind: "wrong"; what: string; reply: number | undefined } | { kind: "frame"; value: T; end: number };

/** What a client offers; `open` is whether it does without authentication. */
export type Greeting = { open: boolean };

/** What a client asks for, the host as it wrote it. */
export type SocksRequest = { command: number; host: string; port: number };

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const [IPV4, NAME, IPV6] = [1, 3, 4] as const;
const HEAD = 4;

/** Replies of RFC 1928 section 6. */
export const REPLY = { granted: 0, failure: 1, notAllowed: 2, hostUnreachable: 4, refused: 5, commandUnknown: 7, addressUnknown: 8 } as const;

/** Reads the greeting of a client (RFC 1928 section 3). */
export function readGreeting(bytes: Buffer): FrameRead<Greeting> {
  const [version, count] = bytes;
  if (version !== undefined && version !== VERSION) return wrong(version === 4 ? "SOCKS 4 is not spoken" : "this is not SOCKS 5");
  if (count === undefined || bytes.length < 2 + count) return { kind: "need-more" };
  return { kind: "frame", value: { open: bytes.subarray(2, 2 + count).includes(NO_AUTHENTICATION) }, end: 2 + count };
}

/** Reads a request (RFC 1928 section 4). */
export function readRequest(bytes: Buffer): FrameRead<SocksRequest> {
  const [version, command, reserved, type] = bytes;
  if (version !== undefined && version !== VERSION) return wrong("the request is not of SOCKS 5");
  if (command === undefined || reserved === undefined || type === undefined) return { kind: "need-more" };
  if (reserved !== 0) return wrong("the reserved byte is used", REPLY.failure);
  const length = lengthOf(type, bytes[HEAD]);
  if (length === undefined) return wrong(`there is no address type ${type}`, REPLY.addressUnknown);
  const end = HEAD + length + 2;
  if (bytes.length < end || Number.isNaN(length)) return { kind: "need-more" };
  return { kind: "frame", value: { command, host: readHost(type, bytes.subarray(HEAD, HEAD + length)), port: bytes.readUInt16BE(HEAD + length) }, end };
}

/** Bytes of an address, the length of a name among them; NaN where that is not there yet, undefined for an unknown type. */
function lengthOf(type: number, first: number | undefined): number | undefined {
  if (type === IPV4) return 4;
  if (type === IPV6) return 16;
  return type === NAME ? 1 + (first ?? Number.NaN) : undefined;
}

function readHost(type: number, bytes: Buffer): string {
  if (type === NAME) return bytes.toString("utf8", 1);
  return addressFromValue(type === IPV4 ? 4 : 6, BigInt(`0x${bytes.toString("hex")}`)).text;
}

/** A reply without an address: what the proxy's own end is called is nobody's business. */
export function renderReply(code: number): Buffer {
  return Buffer.from([VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]);
}

function wrong(what: string, reply?: number): { kind: "wrong"; what: string; reply: number | undefined } {
  return { kind: "wrong", what, reply };
}
