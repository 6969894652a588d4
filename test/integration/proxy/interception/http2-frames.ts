/** HTTP/2 by hand (RFC 9113), for what Node's own client would not send. */

const TYPES = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 } as const;
const END_HEADERS = 4;

/** The client's preface and empty settings. */
export const PREFACE: Buffer = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.from([0, 0, 0, TYPES.settings, 0, 0, 0, 0, 0])]);

export function renderFrame(type: keyof typeof TYPES, stream: number, payload: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = TYPES[type];
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Fields in HPACK, each as a literal that is not indexed (RFC 7541 section 6.2.2), short ones only. */
export function renderFields(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(fields.map(([name, value]) => Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name, "latin1"), renderLength(value.length), Buffer.from(value, "latin1")])));
}

/** An integer with a prefix of seven bits (RFC 7541 section 5.1). */
function renderLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** The head of a request whose body follows. */
export function renderHead(stream: number, { method, authority, path }: { method: string; authority: string; path: string }, more: readonly (readonly [string, string])[] = []): Buffer {
  return renderFrame("headers", stream, renderFields([[":method", method], [":scheme", "https"], [":authority", authority], [":path", path], ...more]), END_HEADERS);
}
