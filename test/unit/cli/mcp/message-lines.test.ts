import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageLines } from "../../../../cli/mcp/message-lines.ts";

async function collect(pieces: readonly Buffer[], limit: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const piece of Readable.from(pieces).pipe(new MessageLines(limit))) seen.push(Buffer.from(piece).toString("latin1"));
  return seen;
}

describe("lines of messages", () => {
  test("are whole, however the bytes were cut, and nothing is lost but an unfinished end", async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.string({ unit: "binary-ascii", maxLength: 8 }).map((piece) => piece.replaceAll("~", "\n"))), async (pieces) => {
      const whole = pieces.join("");
      const given = await collect(pieces.filter((piece) => piece !== "").map((piece) => Buffer.from(piece, "latin1")), 10_000);
      expect(given.join("")).toBe(whole.slice(0, whole.lastIndexOf("\n") + 1));
      for (const piece of given) expect(piece.endsWith("\n")).toBe(true);
    }), { numRuns: 300 });
  });

  test("may be as long as the limit, in pieces of one byte too", async () => {
    const long = `${"x".repeat(1000)}\n`;
    expect(await collect(Array.from(Buffer.from(long), (byte) => Buffer.of(byte)), 1000)).toEqual([long]);
  });

  test("are refused beyond it, before their end comes", async () => {
    await expect(text(Readable.from([Buffer.alloc(600), Buffer.alloc(401)]).pipe(new MessageLines(1000)))).rejects.toThrow(/maximum of 1000 bytes/);
  });
});
