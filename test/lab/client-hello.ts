/** What a hello is made of; the defaults are those of an ordinary client. */
export type HelloOptions = {
  /** The server name; null leaves the extension out. */
  sni?: string | null;
  alpn?: readonly string[];
  /** Content of an ECH extension. */
  ech?: readonly number[];
  /** Extensions instead of those above, or beside them. */
  only?: readonly Buffer[];
  also?: readonly Buffer[];
  session?: Buffer;
  suites?: Buffer;
  compressions?: Buffer;
  /** Bytes behind the extensions. */
  behind?: Buffer;
  /** Without the extensions and their length. */
  bare?: boolean;
};

/** A vector of TLS with its length in front. */
export function vector(size: 1 | 2, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const head = Buffer.alloc(size);
  head.writeUIntBE(content.length, 0, size);
  return Buffer.concat([head, content]);
}

/** An extension with its type and length. */
export function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >> 8, type & 0xff]), vector(2, content)]);
}

/** An entry of a list of server names; type 0 is a host name. */
export function nameEntry(name: string | Buffer, type = 0): Buffer {
  return Buffer.concat([Buffer.from([type]), vector(2, Buffer.from(name))]);
}

/** The extension that names a server, of these entries. */
export function serverName(...entries: readonly Buffer[]): Buffer {
  return extension(0, vector(2, ...entries));
}

/** The message, without its record. */
export function makeMessage({ sni = "a.example.com", alpn = ["h2", "http/1.1"], ech, only, also = [], session = Buffer.alloc(32, 7), suites = Buffer.from([0x13, 0x01, 0x13, 0x02]), compressions = Buffer.from([0]), behind = Buffer.alloc(0), bare = false }: HelloOptions = {}): Buffer {
  const extensions = only ?? [
    extension(0x0a0a, Buffer.alloc(0)),
    ...(sni === null ? [] : [serverName(nameEntry(sni))]),
    ...(alpn.length === 0 ? [] : [extension(16, vector(2, ...alpn.map((name) => vector(1, Buffer.from(name)))))]),
    ...(ech === undefined ? [] : [extension(0xfe0d, Buffer.from(ech))]),
    extension(43, Buffer.from([2, 3, 4])),
  ];
  const tail = bare ? behind : Buffer.concat([vector(2, ...extensions, ...also), behind]);
  const body = Buffer.concat([Buffer.from([3, 3]), Buffer.alloc(32, 9), vector(1, session), vector(2, suites), vector(1, compressions), tail]);
  return Buffer.concat([Buffer.from([1, 0]), vector(2, body)]);
}

/** Puts a message into records of at most this many bytes. */
export function makeRecords(message: Buffer, { size = 16_384, type = 22, version = [3, 1] }: { size?: number; type?: number; version?: readonly number[] } = {}): Buffer {
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) records.push(Buffer.from([type, ...version]), vector(2, message.subarray(at, at + size)));
  return Buffer.concat(records);
}

/** A whole hello as it is on the wire. */
export function makeHello(options: HelloOptions = {}): Buffer {
  return makeRecords(makeMessage(options));
}
