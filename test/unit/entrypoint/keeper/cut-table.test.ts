import { expect, it } from "vitest";
import { CutTable, targetOf } from "../../../../entrypoint/keeper/cut-table.ts";

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
