import { once } from "node:events";
import { createServer } from "node:net";
import { connect } from "node:tls";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type HelloRead, readClientHello } from "../../../../proxy/tls/client-hello.ts";
import { extension, type HelloOptions, makeHello, makeMessage, makeRecords, nameEntry, serverName, vector } from "../../../lab/client-hello.ts";

const none = Buffer.alloc(0);
const padded = (length: number): HelloRead => readClientHello(makeHello({ also: [extension(21, Buffer.alloc(length))] }));
const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);

describe("a hello", () => {
  test.for<{ what: string; options: HelloOptions; sni?: string; alpn?: readonly string[]; ech?: boolean }>([
    { what: "with a name and protocols", options: {}, sni: "a.example.com", alpn: ["h2", "http/1.1"] },
    { what: "without a name", options: { sni: null, alpn: [] } },
    { what: "without extensions", options: { bare: true } },
    { what: "with an empty list of extensions", options: { only: [] } },
    { what: "with the name in capitals and with a dot at the end, as it came", options: { sni: "A.Example.COM.", alpn: [] }, sni: "A.Example.COM." },
    { what: "with an address for a name, as it came", options: { sni: "203.0.113.7", alpn: [] }, sni: "203.0.113.7" },
    { what: "with an A-label and an underscore", options: { sni: "_x.xn--bcher-kva.example", alpn: [] }, sni: "_x.xn--bcher-kva.example" },
    { what: "with an outer encrypted hello", options: { ech: [0, 0, 1, 0, 1, 7, 0, 0, 0, 0], alpn: [] }, sni: "a.example.com", ech: true },
    { what: "with the mark of an inner encrypted hello, which hides nothing", options: { ech: [1], alpn: [] }, sni: "a.example.com" },
    { what: "without a session", options: { session: none, alpn: [] }, sni: "a.example.com" },
  ])("$what is read", ({ options, sni, alpn = [], ech = false }) => {
    expect(readClientHello(makeHello(options))).toEqual({ kind: "hello", sni, alpn, ech, end: makeHello(options).length });
  });

  test("of a real client is read", async () => {
    const server = createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    const where = server.address();
    if (where === null || typeof where === "string") throw new Error("no port");
    const arrived = once(server, "connection");
    const client = connect({ port: where.port, host: "127.0.0.1", servername: "real.example.com", ALPNProtocols: ["h2"] }).on("error", () => undefined);
    const [socket] = await arrived;
    const [first] = await once(socket, "data");
    client.destroy();
    socket.destroy();
    server.close();
    expect(readClientHello(first)).toEqual({ kind: "hello", sni: "real.example.com", alpn: ["h2"], ech: false, end: first.length });
  });

  test("is read with early data behind it", () => {
    expect(readClientHello(Buffer.concat([makeHello(), bytes(20, 3, 3, 0, 1, 1), bytes(23, 3, 3, 0, 2, 9, 9)]))).toMatchObject({ kind: "hello", end: makeHello().length });
  });

  test.for([1, 2, 3, 4, 5, 7, 64, 100, 16_384])("is read out of records of %i bytes", (size) => {
    expect(readClientHello(makeRecords(makeMessage(), { size }))).toMatchObject({ kind: "hello", sni: "a.example.com" });
  });

  test.for([1, 3, 1000, 16_384])("asks for more until it is whole, never for more than there is, in records of %i bytes", (size) => {
    const whole = makeRecords(makeMessage({ also: [extension(21, Buffer.alloc(3000))] }), { size });
    let looks = 0;
    for (let length = 1; length < whole.length; looks += 1) {
      const read = readClientHello(whole.subarray(0, length));
      if (read.kind !== "need-more") throw new Error(`${read.kind} after ${length} bytes`);
      expect(read.bytes).toBeGreaterThan(length);
      expect(read.bytes).toBeLessThanOrEqual(whole.length);
      length = read.bytes;
    }
    expect(readClientHello(whole).kind).toBe("hello");
    // Somebody who sends single bytes makes nobody look at them one by one.
    expect(looks).toBeLessThan(100);
  });

  test("of nearly 32 KiB is read, a larger one is not", () => {
    expect(padded(32_000).kind).toBe("hello");
    expect(padded(32_768)).toEqual({ kind: "malformed", what: "the hello is too large" });
    expect(readClientHello(bytes(22, 3, 1, 0, 4, 1, 255, 255, 255))).toEqual({ kind: "malformed", what: "the hello is too large" });
  });
});

describe("not TLS", () => {
  test.for([
    { what: "SSH", first: Buffer.from("SSH-2.0-OpenSSH_9.2\r\n") },
    { what: "HTTP", first: Buffer.from("GET / HTTP/1.1\r\n") },
    { what: "a telnet negotiation", first: bytes(0xff, 0xfd, 1) },
    { what: "a record marker of RPC", first: bytes(0x80, 0, 0, 0x28) },
    { what: "a handshake type with a version that no server reads", first: bytes(22, 16, 0, 0, 1) },
    { what: "a type of no record", first: bytes(19, 3, 1, 0, 1) },
  ])("is $what", ({ first }) => {
    expect(readClientHello(first)).toEqual({ kind: "not-tls" });
  });
});

describe("a malformed hello is", () => {
  const suffixed = (type: number): Buffer => Buffer.concat([makeHello(), makeRecords(bytes(1, 0), { type })]);
  test.for<{ what: string; first: Buffer; says: string | RegExp }>([
    { what: "one with two server names", first: makeHello({ only: [serverName(nameEntry("a.example.com"), nameEntry("b.example.com"))] }), says: "several server names" },
    { what: "one with the same server name twice", first: makeHello({ only: [serverName(nameEntry("a.example.com"), nameEntry("a.example.com"))] }), says: "several server names" },
    { what: "one with two extensions for the server name", first: makeHello({ also: [serverName(nameEntry("b.example.com"))] }), says: "extension 0 stands there twice" },
    { what: "one with any extension twice", first: makeHello({ also: [extension(0x0a0a, none)] }), says: "extension 2570 stands there twice" },
    { what: "one with a name of another type", first: makeHello({ only: [serverName(nameEntry("a.example.com", 1))] }), says: "another type" },
    { what: "one with an empty server name", first: makeHello({ only: [serverName(nameEntry(""))] }), says: "no host name" },
    { what: "one with an empty list of names", first: makeHello({ only: [extension(0, bytes(0, 0))] }), says: "not whole" },
    { what: "one with an empty extension for the name, as only servers send it", first: makeHello({ only: [extension(0, none)] }), says: "not whole" },
    { what: "one with bytes behind the list of names", first: makeHello({ only: [extension(0, Buffer.concat([vector(2, nameEntry("a.example.com")), bytes(0)]))] }), says: "not whole" },
    { what: "one whose name goes beyond its list", first: makeHello({ only: [extension(0, vector(2, bytes(0, 0, 9, 0x61)))] }), says: "not whole" },
    { what: "one with a NUL in the name", first: makeHello({ sni: "a.example.com\0.evil.example.org" }), says: "no host name" },
    { what: "one with a port in the name", first: makeHello({ sni: "a.example.com:443" }), says: "no host name" },
    { what: "one with a blank around the name", first: makeHello({ sni: " a.example.com" }), says: "no host name" },
    { what: "one with a name above ASCII", first: makeHello({ only: [serverName(nameEntry(Buffer.from("bücher.example")))] }), says: "no host name" },
    { what: "one with a name of 256 bytes", first: makeHello({ sni: "a".repeat(256) }), says: "no host name" },
    { what: "one with empty protocols", first: makeHello({ only: [extension(16, none)] }), says: "protocols are not whole" },
    { what: "one with a protocol without a name", first: makeHello({ alpn: ["h2", ""] }), says: "has no name" },
    { what: "one with an empty encrypted hello", first: makeHello({ ech: [] }), says: "encrypted hello" },
    { what: "one with an encrypted hello of a third kind", first: makeHello({ ech: [2] }), says: "encrypted hello" },
    { what: "one with bytes behind the extensions", first: makeHello({ behind: bytes(0) }), says: "do not fill the hello" },
    { what: "one with half a length of extensions", first: makeHello({ bare: true, behind: bytes(0) }), says: "do not fill the hello" },
    { what: "one whose extension goes beyond", first: makeHello({ only: [bytes(0, 0, 0, 9, 1)] }), says: "goes beyond the hello" },
    { what: "one with a session id of 33 bytes", first: makeHello({ session: Buffer.alloc(33) }), says: "head is not whole" },
    { what: "one without cipher suites", first: makeHello({ suites: none }), says: "head is not whole" },
    { what: "one with half a cipher suite", first: makeHello({ suites: bytes(0x13) }), says: "head is not whole" },
    { what: "one without compression methods", first: makeHello({ compressions: none }), says: "head is not whole" },
    { what: "an empty hello", first: makeRecords(bytes(1, 0, 0, 0)), says: "head is not whole" },
    { what: "another message", first: makeRecords(bytes(2, 0, 0, 0)), says: "no hello" },
    { what: "one with another message in its record", first: makeRecords(Buffer.concat([makeMessage(), bytes(1, 0, 0, 0)])), says: "bytes behind the hello" },
    { what: "an alert ahead of one, which servers pass over", first: Buffer.concat([bytes(21, 3, 1, 0, 2, 1, 0), makeHello()]), says: "a record of type 21" },
    { what: "a change of ciphers ahead of one", first: Buffer.concat([bytes(20, 3, 3, 0, 1, 1), makeHello()]), says: "a record of type 20" },
    { what: "one in a record of version 2.0, which servers read", first: makeRecords(makeMessage(), { version: [2, 0] }), says: "version 2" },
    { what: "one of SSL 2, which servers read", first: bytes(0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10), says: "SSL 2" },
    { what: "one with an alert between its records", first: Buffer.concat([makeRecords(makeMessage(), { size: 20 }).subarray(0, 25), bytes(21, 3, 1, 0, 2, 1, 0)]), says: "another kind inside" },
    { what: "one with an empty record", first: bytes(22, 3, 1, 0, 0, 22, 3, 1), says: "wrong length" },
    { what: "one with a record over 16 KiB", first: bytes(22, 3, 1, 0x40, 0x01), says: "wrong length" },
    { what: "one whose length is too small", first: Buffer.concat([makeHello().subarray(0, 8), bytes(makeHello().readUInt8(8) - 1), makeHello().subarray(9)]), says: "bytes behind the hello" },
  ])("$what", ({ first, says }) => {
    const read = readClientHello(first);
    if (read.kind !== "malformed") throw new Error(`it is ${read.kind}`);
    expect(read.what).toContain(says);
  });

  test("not one with more records behind it, whatever they are", () => {
    expect([20, 21, 22, 23].map((type) => readClientHello(suffixed(type)).kind)).toEqual(["hello", "hello", "hello", "hello"]);
  });
});

/** More bytes are asked for than there are; a name stands in the bytes, or is spread over several records. */
function isPossible(read: HelloRead, input: Buffer): boolean {
  if (read.kind === "need-more") return read.bytes > input.length;
  return read.kind !== "hello" || read.sni === undefined || input.includes(read.sni) || input.readUInt16BE(3) < input.length - 5;
}

describe("any bytes", () => {
  const KINDS: ReadonlySet<string> = new Set(["hello", "need-more", "not-tls", "malformed"]);

  test("of 100,000 damaged hellos are read or refused, and never throw", () => {
    const whole = makeHello({ ech: [0, 1, 2] });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }), fc.nat(whole.length), fc.integer({ min: 1, max: 40 }), (changes, cut, size) => {
        const damaged = Buffer.from(whole.subarray(0, whole.length - (cut % 3 === 0 ? cut : 0)));
        for (const [at, value] of changes) if (at < damaged.length) damaged[at] = value;
        const split = damaged.length > 5 ? makeRecords(damaged.subarray(5), { size }) : damaged;
        for (const input of [damaged, split]) {
          const read = readClientHello(input);
          expect(KINDS.has(read.kind) && isPossible(read, input)).toBe(true);
        }
      }),
      { numRuns: 100_000, seed: 8446 },
    );
  });

  test("at all are read or refused, and never throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.boolean(), (random, begun) => {
        const input = begun ? makeRecords(Buffer.concat([bytes(1, 0), vector(2, Buffer.from(random))])) : Buffer.from(random);
        expect(KINDS.has(readClientHello(input).kind)).toBe(true);
      }),
      { numRuns: 20_000, seed: 6066 },
    );
  });
});
