import { describe, expect, it } from "vitest";
import { buildZone, listedNames, syntheticName } from "../../lab/zone.ts";

describe("zone of the lab", () => {
  const zone = buildZone(["b.test", "a.test", "*.wide.test", "A.test."]);

  it("gives every name an address pair that depends on the sorted list only", () => {
    const again = buildZone(["a.test", "*.wide.test", "b.test"]);
    for (const name of ["a.test", "b.test", "x.wide.test"]) expect(again.find(name)).toEqual(zone.find(name));
    expect(zone.find("a.test")).not.toEqual(zone.find("b.test"));
  });

  it.each([
    ["answers any depth below a wildcard", "x.y.wide.test", true],
    ["does not answer the apex of a wildcard", "wide.test", false],
    ["does not know a name that nobody listed", "nobody.test", false],
    ["keeps GitHub inside its ranges", "github.com", true],
    ["knows synthetic names by rule", "n0001.lab-names.example", true],
    ["knows no synthetic name zero", "n0000.lab-names.example", false],
    ["knows no synthetic name beyond the last", "n60001.lab-names.example", false],
  ])("%s", (_, name, known) => {
    expect(zone.find(name) !== undefined).toBe(known);
  });

  it("gives a thousand synthetic names a thousand address pairs", () => {
    const records = Array.from({ length: 1000 }, (_, index) => JSON.stringify(zone.find(syntheticName(index + 1))));
    expect(new Set(records).size).toBe(1000);
  });

  it("gives no two pool names one address", () => {
    const names = Array.from({ length: 1200 }, (_, index) => `h${index}.test`);
    const large = buildZone(names);
    expect(new Set(names.map((name) => JSON.stringify(large.find(name)))).size).toBe(1200);
    const others = large.names.filter((name) => !name.endsWith(".test")).flatMap((name) => large.find(name)?.a ?? []);
    expect(names.filter((name) => others.includes(large.find(name)?.a?.[0] ?? "none"))).toEqual([]);
  });

  it("refuses more names than it has addresses", () => {
    expect(() => buildZone(Array.from({ length: 2000 }, (_, index) => `h${index}.test`))).toThrow(RangeError);
  });

  it("reads names from bash lists without comments, addresses and schemes", () => {
    const text = ['# not.this.example', 'ALLOWED=(', '  "a.example.com:8443" # nor.that.example', "  **.b.example.com", "  tcp://ssh.example.com:443 192.0.2.7", ")"].join("\n");
    expect(listedNames(text)).toEqual(["a.example.com", "b.example.com", "*.b.example.com", "ssh.example.com"]);
  });
});
