import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FrameReader, writeFrame } from "../../../proxy/dns/frame.ts";
import { readQuery } from "../../../proxy/dns/query.ts";
import { readResponse } from "../../../proxy/dns/response.ts";
import { encodeQuestion, matchAnswer } from "../../../proxy/dns/upstream-question.ts";
import { encodeName, readName, WireError } from "../../../proxy/dns/wire.ts";

const label = fc.stringMatching(/^[a-z0-9_-]{1,20}$/);
const name = fc.array(label, { minLength: 1, maxLength: 8 }).map((labels) => labels.join("."));

const readBytes = (bytes: readonly number[]): string => readName(Buffer.from([...Array.from({ length: 12 }, () => 0), ...bytes, 0]), 12).name;

describe("names on the wire", () => {
  test("come back as they were written", () => {
    fc.assert(
      fc.property(name, (text) => {
        expect(readName(Buffer.concat([Buffer.alloc(12), encodeName(text)]), 12).name).toBe(text);
      }),
    );
  });

  test("of strange bytes keep their difference", () => {
    expect(readBytes([3, 0x61, 0x2e, 0x62])).toBe(String.raw`a\046b`);
    expect(readBytes([1, 0x61, 1, 0x62])).toBe("a.b");
    expect(readBytes([2, 0x61, 0x00])).toBe(String.raw`a\000`);
  });

  test.for([
    { what: "a pointer to itself", bytes: [0xc0, 12] },
    { what: "a pointer forwards", bytes: [0xc0, 14, 0] },
    { what: "a pointer into the header", bytes: [0xc0, 2] },
    { what: "a label beyond the end", bytes: [63, 0x61] },
    { what: "a label type that does not exist", bytes: [0x80, 0x61, 0] },
    { what: "no end", bytes: [1, 0x61] },
  ])("with $what are refused", ({ bytes }) => {
    expect(() => readName(Buffer.from([...Array.from({ length: 12 }, () => 0), ...bytes]), 12)).toThrow(WireError);
  });
});

describe("messages", () => {
  test("of any bytes are read, refused or met with silence, and never throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(["query", "refuse", "silence"]).toContain(readQuery(Buffer.from(bytes)).kind);
      }),
      { numRuns: 5000 },
    );
  });

  test("of an upstream are read or refused as malformed, whatever bytes follow the question", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(20), fc.nat(20), (bytes, answers, authorities) => {
        const head = Buffer.alloc(12);
        head.writeUInt16BE(answers, 6);
        head.writeUInt16BE(authorities, 8);
        expect(outcomeOf(() => readResponse(Buffer.concat([head, Buffer.from(bytes)]), 12))).toBe("fine");
      }),
      { numRuns: 5000 },
    );
  });

  test("belong to a question only with its id, its letters and its type", () => {
    const outgoing = encodeQuestion({ name: "api.example.com", type: 1 });
    const answer = Buffer.from(outgoing.message);
    answer.writeUInt16BE(0x8180, 2);
    expect(matchAnswer(outgoing, answer)).toBe("answer");
    for (let at = 12; at < outgoing.questionEnd; at += 1) {
      const other = Buffer.from(answer);
      other.writeUInt8(other.readUInt8(at) ^ 0x20, at);
      expect(matchAnswer(outgoing, other)).not.toBe("answer");
    }
  });

  test("are cut out of a stream wherever its chunks end", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 5 }), fc.integer({ min: 1, max: 20 }), (messages, step) => {
        const stream = Buffer.concat(messages.map((message) => writeFrame(Buffer.from(message))));
        const reader = new FrameReader();
        const found: (Buffer | undefined)[] = [];
        for (let at = 0; at < stream.length; at += step) found.push(...reader.push(stream.subarray(at, at + step)));
        expect(found.map((message) => message?.toString("hex"))).toEqual(messages.map((message) => Buffer.from(message).toString("hex")));
      }),
    );
  });
});

/** Malformed bytes may be refused, but only as such. */
function outcomeOf(read: () => unknown): unknown {
  try {
    read();
    return "fine";
  } catch (error) {
    return error instanceof WireError ? "fine" : error;
  }
}
