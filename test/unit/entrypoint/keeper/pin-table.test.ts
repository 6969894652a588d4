import { beforeEach, describe, expect, it } from "vitest";
import { PinTable } from "../../../../entrypoint/keeper/pin-table.ts";

describe("what a private name leads to", () => {
  let table: PinTable;
  beforeEach(() => {
    table = new PinTable();
  });

  it("is what was said first, whatever is said later, and may be said again in another order", () => {
    expect(table.keep("db", ["10.0.0.2", "10.0.0.1"])).toBeUndefined();
    expect(table.keep("db", ["10.0.0.1", "10.0.0.2", "10.0.0.1"])).toBeUndefined();
    for (const other of [["10.0.0.1"], ["10.0.0.1", "10.0.0.2", "10.0.0.3"], []]) expect(table.keep("db", other)).toBe("db was pinned to 10.0.0.1, 10.0.0.2");
    table.forgetEmpty();
    expect(table.keep("db", ["10.0.0.3"])).toBe("db was pinned to 10.0.0.1, 10.0.0.2");
    expect(table.describe()).toEqual({ db: ["10.0.0.1", "10.0.0.2"] });
  });

  it("may come later where it was nothing, until the start is over", () => {
    expect(table.keep("db", [])).toBeUndefined();
    expect([table.has("db"), table.describe()]).toEqual([true, {}]);
    expect(table.keep("db", ["10.0.0.1"])).toBeUndefined();
    expect(table.keep("cache", [])).toBeUndefined();
    table.settle();
    expect(table.keep("cache", ["10.0.0.1"])).toBe("cache was pinned when it led nowhere");
    expect(table.keep("cache", [])).toBeUndefined();
    expect(table.describe()).toEqual({ db: ["10.0.0.1"], cache: [] });
  });

  it("may come once more with each policy of the owner's where it was nothing", () => {
    table.settle();
    for (const _ of ["one policy", "another"]) {
      expect(table.keep("db", [])).toBeUndefined();
      expect(table.keep("db", ["10.0.0.1"])).toBe("db was pinned when it led nowhere");
      table.forgetEmpty();
      expect([table.has("db"), table.describe()]).toEqual([false, {}]);
    }
    expect(table.keep("db", ["10.0.0.1"])).toBeUndefined();
  });

  it("is kept of a thousand names at most", () => {
    for (let index = 0; index < 1000; index += 1) expect(table.keep(`n${index}`, [])).toBeUndefined();
    expect(table.keep("one-more", [])).toBe("too many names are pinned");
    expect(table.keep("n0", ["10.0.0.1"])).toBeUndefined();
  });
});
