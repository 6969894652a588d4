import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPending, renderPending } from "../../../policy/pending-lines.ts";

const line = fc.string().map((text) => JSON.stringify(text));

describe("what is counted beside a log", () => {
  test("the newest whole file counts, in whichever it is", () => {
    const [older, newer] = [renderPending(9, ["a"]), renderPending(10, ["b", "c"])];
    expect(readPending([older, newer])).toEqual(["b", "c"]);
    expect(readPending([newer, older])).toEqual(["b", "c"]);
    expect(readPending([newer, renderPending(11, [])])).toEqual([]);
    expect(readPending(["", ""])).toEqual([]);
    expect(readPending([])).toEqual([]);
  });

  test("a write over another that ends at any byte gives the lines of the one or the other file, whole", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), fc.array(line, { maxLength: 6 }), fc.array(line, { maxLength: 6 }), fc.nat(200), (first, second, third, at) => {
        const [under, beside, over] = [Buffer.from(renderPending(1, first)), renderPending(2, second), Buffer.from(renderPending(3, third))];
        const end = Math.min(at, over.length);
        const torn = Buffer.concat([over.subarray(0, end), under.subarray(end)]).toString();
        expect(end === over.length ? [third] : [second, third]).toContainEqual(readPending([beside, torn]));
      }),
      { numRuns: 2000 },
    );
  });

  test.each(["1 1\n{}", "1 1\n{}\n2\n", "x 1\n{}\nx\n", "1 9999999\n1\n", "1 -1\n1\n", "9".repeat(20), "1 2\n{}\n1\n"])("is nothing where the file says %j", (text) => {
    expect(readPending([text])).toEqual([]);
  });
});
