import fc from "fast-check";
import { expect, it } from "vitest";
import { CutTable, type Target, targetOf } from "../../../../entrypoint/keeper/cut-table.ts";

it("cuts a block around the addresses in it that stay allowed", () => {
  const table = new CutTable();
  const changes = table.add([targetOf("192.0.2.0/29", 443)], [targetOf("192.0.2.2", 443), targetOf("192.0.2.5", 22)]);
  expect(changes.map(({ op, range, port }) => `${op} ${range} ${port}`)).toEqual(["add 192.0.2.0/31 443", "add 192.0.2.3 443", "add 192.0.2.4/30 443"]);
});

it("takes an address out of a block that was cut when it is allowed again, and keeps the rest cut", () => {
  const table = new CutTable();
  table.add([targetOf("192.0.2.0/30", 443)], []);
  expect(table.release([targetOf("192.0.2.1", 443)]).map(({ op, range }) => `${op} ${range}`)).toEqual(["delete 192.0.2.0/30", "add 192.0.2.0", "add 192.0.2.2/31"]);
  expect(table.release([targetOf("192.0.2.1", 443)])).toEqual([]);
  expect(table.release([targetOf("192.0.2.0/24", 8443)])).toEqual([]);
});

it("never holds two elements of one port that overlap, and none twice", () => {
  const table = new CutTable();
  table.add([targetOf("192.0.2.1", 443), targetOf("192.0.2.1", 443)], []);
  expect(table.size).toBe(1);
  expect(table.add([targetOf("192.0.2.0/24", 443), targetOf("192.0.2.9", 443)], []).map(({ op, range }) => `${op} ${range}`)).toEqual(["delete 192.0.2.1", "add 192.0.2.0/24"]);
  expect(table.add([targetOf("192.0.2.77", 443)], [])).toEqual([]);
});

it("goes back to what was cut before, and says all of it again", () => {
  const table = new CutTable();
  table.add([targetOf("192.0.2.0/30", 443), targetOf("192.0.2.9", 443)], []);
  const before = table.targets;
  table.release([targetOf("192.0.2.1", 443)]);
  table.add([targetOf("192.0.2.77", 443)], []);
  expect(table.restore(before).map(({ op, range }) => `${op} ${range}`)).toEqual(["delete 192.0.2.0", "delete 192.0.2.2/31", "delete 192.0.2.77", "add 192.0.2.0/30", "add 192.0.2.9"]);
  expect(table.targets).toEqual(before);
});

const BITS = 5;
const PORTS = [22, 443];

// A world of 32 addresses, so that blocks meet often and every address can be looked at.
const block = fc.record({ prefix: fc.integer({ min: 32 - BITS, max: 32 }), offset: fc.nat(2 ** BITS - 1), port: fc.constantFrom(...PORTS) }).map(({ prefix, offset, port }) => {
  const size = 2 ** (32 - prefix);
  return targetOf(`192.0.2.${offset - (offset % size)}/${prefix}`, port);
});
const step = fc.record({ op: fc.constantFrom("add", "release"), targets: fc.array(block, { maxLength: 4 }), allowed: fc.array(block, { maxLength: 4 }) });

it("cuts what it was told less what is allowed, whatever came before, and its changes are what the kernel needs", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
      const table = new CutTable();
      const kernel = new Set<string>();
      const expected = new Set<string>();
      for (const { op, targets, allowed } of steps) {
        for (const change of op === "add" ? table.add(targets, allowed) : table.release(allowed)) {
          const element = `${change.range} ${change.port}`;
          // nftables refuses an element that is there and overlaps, ipset one that is not there.
          expect(kernel.has(element)).toBe(change.op === "delete");
          if (change.op === "delete") kernel.delete(element);
          else kernel.add(element);
        }
        const cells = listCells(targets);
        const free = listCells(allowed);
        if (op === "add") for (const cell of cells) if (!free.has(cell)) expected.add(cell);
        if (op === "release") for (const cell of free) expected.delete(cell);
        const held = [...kernel].map((element) => targetOf(element.split(" ")[0] ?? "", Number(element.split(" ")[1])));
        expect([...listCells(held)].toSorted()).toEqual([...expected].toSorted());
        expect(held.reduce((sum, { range }) => sum + 2 ** (32 - range.prefix), 0)).toBe(expected.size);
      }
    }),
    { numRuns: 2000 },
  );
});

/** Every `ADDRESS PORT` of the small world that lies in one of the targets. */
function listCells(targets: readonly Target[]): Set<string> {
  return new Set(targets.flatMap(({ range, port }) => Array.from({ length: 2 ** (32 - range.prefix) }, (_, index) => `${(range.base & 255n) + BigInt(index)} ${port}`)));
}
