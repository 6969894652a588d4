import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { verifyChain } from "../../../sandbox/audit-chain.ts";
import { type AuditRecord, NO_PREVIOUS, parseEntry, renderEntry } from "../../../sandbox/audit-entry.ts";
import { type AuditLine, LineCutter } from "../../../sandbox/audit-reader.ts";

function makeLog(paths: readonly string[], session = "s1"): { lines: string[]; hashes: string[] } {
  const lines: string[] = [];
  const hashes: string[] = [];
  const add = (fields: Partial<AuditRecord> & Pick<AuditRecord, "kind">): void => {
    const record: AuditRecord = { v: 1, seq: lines.length + 1, time: "2026-11-22T04:00:00.000Z", session, ...fields };
    const { line, hash } = renderEntry(record, hashes.at(-1) ?? NO_PREVIOUS);
    lines.push(line);
    hashes.push(hash);
  };
  add({ kind: "session", event: "opened" });
  for (const path of paths) {
    add({ kind: "request", task: "t", intent: "read", path, decision: "allow", ruleId: "inside", tags: [] });
    add({ kind: "outcome", task: "t", intent: "read", path, of: lines.length, outcome: "done", size: 7 });
  }
  return { lines, hashes };
}

function readBytes(bytes: Buffer): AuditLine[] {
  const cutter = new LineCutter();
  return [...cutter.take(bytes), ...cutter.end()];
}

const asLog = (lines: readonly string[]): AuditLine[] => readBytes(Buffer.from(lines.map((line) => `${line}\n`).join("")));

const log = makeLog(["/w/a", "/w/b", "/w/c"]);
const with_ = (index: number, count: number, ...more: string[]): string[] => log.lines.toSpliced(index, count, ...more);
const at = (index: number): string => log.lines[index] ?? "";

describe("a chain", () => {
  test("that nobody touched holds to its end", () => {
    expect(verifyChain(asLog(log.lines))).toMatchObject({ entries: 7, session: "s1", head: log.hashes[6], broken: undefined });
  });

  test.each([
    { name: "a path that was changed", lines: with_(3, 1, at(3).replace("/w/b", "/w/x")), broken: { line: 4, kind: "changed" }, entries: 3 },
    { name: "a line that was written anew, with a right hash", lines: with_(3, 1, renderEntry({ v: 1, seq: 4, time: "", session: "s1", kind: "request" }, log.hashes[2] ?? "").line), broken: { line: 5, kind: "changed" }, entries: 4 },
    { name: "a line that was removed", lines: with_(3, 1), broken: { line: 4, kind: "removed", detail: "entry 4 is missing" }, entries: 3 },
    { name: "lines that were removed", lines: with_(2, 3), broken: { line: 3, kind: "removed", detail: "entries 3 to 5 are missing" }, entries: 2 },
    { name: "the beginning that was removed", lines: with_(0, 1), broken: { line: 1, kind: "removed" }, entries: 0 },
    { name: "a line that was written twice", lines: with_(4, 0, at(3)), broken: { line: 5, kind: "inserted", detail: "entry 4 comes again" }, entries: 4 },
    { name: "a later line that was copied to the front", lines: with_(2, 0, at(5)), broken: { line: 3, kind: "inserted" }, entries: 2 },
    { name: "a line of another log", lines: with_(3, 0, makeLog(["/x"], "s2").lines[1] ?? ""), broken: { line: 4, kind: "inserted" }, entries: 3 },
    { name: "words that are no entry", lines: with_(3, 0, "hello"), broken: { line: 4, kind: "inserted" }, entries: 3 },
    { name: "an empty line", lines: with_(3, 0, ""), broken: { line: 4, kind: "inserted" }, entries: 3 },
    { name: "two lines that were exchanged", lines: with_(2, 2, at(3), at(2)), broken: { line: 3, kind: "reordered" }, entries: 2 },
    { name: "a log of another session behind a right header", lines: with_(1, 6, ...makeLog(["/x"], "s2").lines.slice(1)), broken: { line: 2, kind: "changed" }, entries: 1 },
    { name: "an entry of another session that follows the hashes", lines: with_(1, 6, renderEntry({ v: 1, seq: 2, time: "", session: "s2", kind: "request" }, log.hashes[0] ?? "").line), broken: { line: 2, kind: "changed" }, entries: 1 },
    { name: "a gap in the numbers that the hashes do not have", lines: with_(1, 6, renderEntry({ v: 1, seq: 3, time: "", session: "s1", kind: "request" }, log.hashes[0] ?? "").line), broken: { line: 2, kind: "removed" }, entries: 1 },
    { name: "nothing at all", lines: [], broken: { line: 1, kind: "cut-off" }, entries: 0 },
  ])("shows $name", ({ lines, broken, entries }) => {
    expect(verifyChain(asLog(lines))).toMatchObject({ broken, entries });
  });

  test("shows a last line that was not written whole", () => {
    const bytes = Buffer.from(log.lines.map((line) => `${line}\n`).join(""));
    expect(verifyChain(readBytes(bytes.subarray(0, -1)))).toMatchObject({ entries: 6, broken: { line: 7, kind: "torn" } });
  });

  test("without its last lines holds by itself, and not against a head that was noted", () => {
    const short = asLog(log.lines.slice(0, 5));
    expect(verifyChain(short)).toMatchObject({ entries: 5, broken: undefined });
    expect(verifyChain(short, { head: log.hashes[6] })).toMatchObject({ entries: 5, broken: { line: 6, kind: "cut-off" } });
    expect(verifyChain(asLog(log.lines), { head: log.hashes[4] })).toMatchObject({ entries: 7, broken: undefined });
  });

  test("that was made anew holds by itself, and not against a head that was noted", () => {
    const forged = asLog(makeLog(["/w/a", "/w/forged", "/w/c"]).lines);
    expect(verifyChain(forged)).toMatchObject({ broken: undefined });
    expect(verifyChain(forged, { head: log.hashes[2] })).toMatchObject({ broken: undefined });
    expect(verifyChain(forged, { head: log.hashes[6] })).toMatchObject({ broken: { kind: "cut-off" } });
  });
});

const paths = fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 12 });
const place = fc.nat();

describe("every single", () => {
  test("removal, exchange and insertion of a line is found at its place", () => {
    fc.assert(
      fc.property(paths, fc.constantFrom("remove", "swap", "insert"), place, place, (names, action, first, second) => {
        const { lines, hashes } = makeLog(names);
        const [a, b] = [first % lines.length, second % lines.length];
        const one = lines[a] ?? "";
        const other = lines[b] ?? "";
        const edited = action === "remove" ? lines.toSpliced(a, 1) : action === "insert" ? lines.toSpliced(a, 0, other) : lines.with(a, other).with(b, one);
        fc.pre(action !== "swap" || a !== b);
        const { broken, entries } = verifyChain(asLog(edited), { head: hashes.at(-1) });
        expect(broken).toBeDefined();
        // A line is a repeat of itself: then the second of the two is the one too many.
        expect(entries).toBe(action === "swap" ? Math.min(a, b) : action === "insert" && a === b ? a + 1 : a);
      }),
      { numRuns: 500 },
    );
  });

  test("change of a byte is found at its line, or behind it where it parts or joins lines", () => {
    fc.assert(
      fc.property(paths, place, fc.integer({ min: 1, max: 255 }), (names, where, difference) => {
        const { lines } = makeLog(names);
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const index = where % bytes.length;
        const line = bytes.subarray(0, index).toString("latin1").split("\n").length;
        bytes[index] = (bytes[index] ?? 0) ^ difference;
        const { broken, entries } = verifyChain(readBytes(bytes));
        expect(broken).toBeDefined();
        expect(entries).toBe(line - 1);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("a line", () => {
  const forging = '/w/a\n{"v":1,"seq":2}\u2028\u0085\u009b31m\u202e"\\\ud800\x1b]0;x\x07';

  test("is one line, whatever a path is made of, and gives the path back", () => {
    fc.assert(
      fc.property(fc.oneof(fc.constant(forging), fc.string({ unit: "binary" })), (path) => {
        const { line, hash } = renderEntry({ v: 1, seq: 1, time: "", session: "s", kind: "request", path }, NO_PREVIOUS);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
        expect(parseEntry(line)).toMatchObject({ path, hash });
      }),
    );
  });

  const { line } = renderEntry({ v: 1, seq: 1, time: "", session: "s", kind: "request", path: "/a\ufffd" }, NO_PREVIOUS);
  test.each([
    { name: "as it was written", bytes: Buffer.from(line), read: true },
    { name: "with a broken character that readers would repair to what was written", bytes: Buffer.from(line, "utf8").fill(Buffer.from([0xf0, 0x9f, 0x98]), line.indexOf("\ufffd"), line.indexOf("\ufffd") + 3), read: false },
    { name: "with a carriage return behind it", bytes: Buffer.from(`${line}\r`), read: false },
    { name: "with a space in it", bytes: Buffer.from(line.replace('"seq":1', '"seq": 1')), read: false },
    { name: "with a member behind the hash", bytes: Buffer.from(line.replace(/\}$/, ',"by":"me"}')), read: false },
  ])("$name is an entry: $read", ({ bytes, read }) => {
    const [only] = readBytes(Buffer.concat([bytes, Buffer.from("\n")]));
    expect(parseEntry(only?.text ?? "") !== undefined).toBe(read);
  });

  test("in which a member stands twice is none, also with a right hash", () => {
    const twice = renderEntry({ v: 1, seq: 1, time: "", session: "s", kind: "request", path: "/a" }, NO_PREVIOUS);
    expect(parseEntry(twice.line)).toBeDefined();
    const forged = reHash(twice.line.replace('"path":"/a"', '"path":"/b","path":"/a"'));
    expect(parseEntry(forged)).toBeUndefined();
    expect(parseEntry(reHash(twice.line))).toBeDefined();
  });

  test("longer than any that the logger writes is read as empty", () => {
    const long = Buffer.alloc(1024 * 1024 + 1, "x");
    expect(readBytes(Buffer.concat([long, Buffer.from("\nshort\n")])).map(({ text }) => text)).toEqual(["", "short"]);
  });
});

function reHash(line: string): string {
  const head = line.slice(0, line.indexOf(',"hash":"'));
  const { createHash } = process.getBuiltinModule("node:crypto");
  return `${head},"hash":"${createHash("sha256").update(head).digest("hex")}"}`;
}
