import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readGreeting, readRequest, renderReply } from "../../../../proxy/socks/socks-frame.ts";

const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);
const named = (name: string, port = 443): Buffer => Buffer.concat([bytes(5, 1, 0, 3, Buffer.byteLength(name)), Buffer.from(name), bytes(port >> 8, port & 0xff)]);

describe("a greeting", () => {
  test.for([
    { what: "that offers nothing but no authentication is open", frame: bytes(5, 1, 0), open: true },
    { what: "that offers it among others is open", frame: bytes(5, 3, 2, 1, 0), open: true },
    { what: "that offers a password only is not", frame: bytes(5, 1, 2), open: false },
    { what: "that offers nothing is not", frame: bytes(5, 0), open: false },
  ])("$what", ({ frame, open }) => {
    expect(readGreeting(frame)).toEqual({ kind: "frame", value: { open }, end: frame.length });
    for (let length = 0; length < frame.length; length += 1) expect(readGreeting(frame.subarray(0, length))).toEqual({ kind: "need-more" });
    expect(readGreeting(Buffer.concat([frame, bytes(0, 0)]))).toEqual({ kind: "frame", value: { open }, end: frame.length });
  });

  test.for([
    { what: "SOCKS 4", first: 4, says: "SOCKS 4 is not spoken" },
    { what: "HTTP", first: 0x47, says: "this is not SOCKS 5" },
    { what: "TLS", first: 22, says: "this is not SOCKS 5" },
  ])("of $what is refused at its first byte", ({ first, says }) => {
    expect(readGreeting(bytes(first))).toEqual({ kind: "wrong", what: says, reply: undefined });
  });
});

describe("a request", () => {
  test.for([
    { what: "for an IPv4 address", frame: bytes(5, 1, 0, 1, 203, 0, 113, 7, 1, 187), value: { command: 1, host: "203.0.113.7", port: 443 } },
    { what: "for an IPv6 address", frame: bytes(5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80), value: { command: 1, host: "2001:db8::1", port: 80 } },
    { what: "for a name", frame: named("a.example.com"), value: { command: 1, host: "a.example.com", port: 443 } },
    { what: "for a name of one sign", frame: named("a", 0), value: { command: 1, host: "a", port: 0 } },
    { what: "for a name of 255 signs", frame: named("a".repeat(255)), value: { command: 1, host: "a".repeat(255), port: 443 } },
    { what: "for an empty name", frame: named(""), value: { command: 1, host: "", port: 443 } },
    { what: "for a name above ASCII", frame: named("bücher.example"), value: { command: 1, host: "bücher.example", port: 443 } },
    { what: "to listen", frame: bytes(5, 2, 0, 1, 0, 0, 0, 0, 0, 0), value: { command: 2, host: "0.0.0.0", port: 0 } },
    { what: "for datagrams", frame: bytes(5, 3, 0, 1, 0, 0, 0, 0, 0, 0), value: { command: 3, host: "0.0.0.0", port: 0 } },
  ])("$what is read wherever it is split", ({ frame, value }) => {
    for (let length = 0; length < frame.length; length += 1) expect(readRequest(frame.subarray(0, length))).toEqual({ kind: "need-more" });
    expect(readRequest(frame)).toEqual({ kind: "frame", value, end: frame.length });
    expect(readRequest(Buffer.concat([frame, frame]))).toEqual({ kind: "frame", value, end: frame.length });
  });

  test.for([
    { what: "of another version", frame: bytes(4, 1, 0, 1), reply: undefined },
    { what: "with its reserved byte used", frame: bytes(5, 1, 1, 1), reply: 1 },
    { what: "with address type 0", frame: bytes(5, 1, 0, 0), reply: 8 },
    { what: "with address type 2", frame: bytes(5, 1, 0, 2), reply: 8 },
    { what: "with address type 255", frame: bytes(5, 1, 0, 255), reply: 8 },
  ])("$what is refused", ({ frame, reply }) => {
    expect(readRequest(frame)).toMatchObject({ kind: "wrong", reply });
  });
});

test("a reply has the form of RFC 1928, section 6", () => {
  expect([...renderReply(2)]).toEqual([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]);
});

test("100,000 frames of any bytes are read, refused or waited for, and none is longer than what came", () => {
  const kinds = new Set(["frame", "need-more", "wrong"]);
  const begun = fc.tuple(fc.constantFrom(0, 1, 5, 5, 5, 255), fc.constantFrom(0, 1, 1, 2, 3, 9), fc.constantFrom(0, 0, 0, 1), fc.constantFrom(0, 1, 3, 3, 4, 9));
  fc.assert(
    fc.property(begun, fc.uint8Array({ maxLength: 30 }), fc.nat(34), (head, tail, cut) => {
      const input = Buffer.from([...head, ...tail]).subarray(0, cut);
      const [greeting, request] = [readGreeting(input), readRequest(input)];
      expect(kinds.has(greeting.kind) && kinds.has(request.kind)).toBe(true);
      for (const read of [greeting, request]) expect(read.kind !== "frame" || read.end <= input.length).toBe(true);
      expect(request.kind !== "frame" || (request.value.command === input[1] && request.value.port === input.readUInt16BE(request.end - 2))).toBe(true);
    }),
    { numRuns: 100_000, seed: 1928 },
  );
});
