import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LearnedTable, lifeOf, portsFor } from "../../../../entrypoint/keeper/learned-table.ts";
import { buildBoxPolicy, type BoxPolicy } from "../../../../policy/box-policy.ts";
import { parseAddress, type Address } from "../../../../policy/address.ts";
import { decide } from "../../../../policy/decide.ts";
import { openPorts } from "../../../../policy/open-ports.ts";
import { type DocumentRule, emptyDocument } from "../../../../policy/policy-document.ts";

const LISTS = { services: "ALLOWED_SERVICES=()\nCRITICAL_SERVICES=()\n", github: 'GITHUB_RANGES_DATE="2026-01-01"\nGITHUB_RANGES=()\n' };
const DAY_S = 86_400;

function allowing(...texts: string[]): BoxPolicy {
  const document = { ...emptyDocument({ name: "shell", hosts: [], critical: null }), sources: [{ label: "config", surface: "list" as const, words: texts.map((text) => ({ text })) }] };
  return buildBoxPolicy({ document, lists: LISTS, isPublicSuffix: () => false, now: 0 });
}

function at(text: string): Address {
  const parsed = parseAddress(text);
  if (!parsed.ok) throw new TypeError(text);
  return parsed.value;
}

const nth = (index: number): Address => at(`93.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`);

describe("the life of a learned address", () => {
  it.each([
    [0, 90, "a TTL of 0 lives a minute and a half"],
    [60, 90, "a TTL of a minute gets half a minute more"],
    [61, 91, "a longer TTL too"],
    [DAY_S, DAY_S, "a day is the most"],
    [2_147_483_647, DAY_S, "whatever the answer says"],
  ])("of %i s is %i s: %s", (ttl, life) => {
    expect(lifeOf(ttl)).toBe(life);
  });
});

describe("the ports of a name at an address", () => {
  it("are those on which the policy decides for it, whatever it says of addresses", () => {
    const entries = fc.subarray(["a.example.net", "*.example.net:22,443", "93.184.216.0/24", "10.0.0.1", "2606:4700::/32"]);
    const blocks = fc.subarray(["93.184.216.7", "93.184.0.0/16", "b.example.net", "*", "2606:4700::1111"], { maxLength: 2 });
    const rules = fc.subarray<DocumentRule>([{ domain: "b.example.net", action: "allow" }, { domain: "93.184.216.7", action: "deny", ports: [443] }, { domain: "*", action: "deny", ports: [22] }, { domain: "*", action: "allow" }]);
    const address = fc.constantFrom("93.184.216.7", "93.184.217.7", "10.0.0.1", "127.0.0.1", "2606:4700::1111", "fd00::1", "2002:a00:1::1");
    let open = 0;
    fc.assert(
      fc.property(entries, blocks, rules, fc.constantFrom("listed" as const, "off" as const), fc.constantFrom("a.example.net", "b.example.net", "c.example.org"), address, (words, denied, ordered, ssh, name, text) => {
        const document = { ...emptyDocument({ name: "shell", hosts: [], critical: null }), ssh, sources: [{ label: "config", surface: "list" as const, words: words.map((word) => ({ text: word })) }], blocks: [{ label: "config", words: denied.map((word) => ({ text: word })) }], rules: ordered };
        const { policy } = buildBoxPolicy({ document, lists: LISTS, isPublicSuffix: () => false, now: 0 });
        const expected = openPorts(policy, { kind: "name", name }).filter((port) => decide(policy, { host: name, port, address: at(text) }).action === "allow");
        expect(portsFor({ policy }, name, at(text))).toEqual(expected);
        open += expected.length;
      }),
      { numRuns: 1000 },
    );
    expect(open).toBeGreaterThan(100);
  });
});

describe("what names have led to", () => {
  it("is open as long as the longest life that was asked for, in whatever order, and by whatever name", () => {
    const asked = fc.record({ name: fc.constantFrom("a.example", "b.example"), index: fc.nat(3), until: fc.nat(1000) });
    const box = allowing("a.example", "b.example:8443");
    fc.assert(
      fc.property(fc.array(asked, { minLength: 1, maxLength: 30 }), (lessons) => {
        const table = new LearnedTable();
        for (const { name, index, until } of lessons) table.learn(name, [{ address: nth(index), until }]);
        const expected = new Map<string, number>();
        for (const { name, index, until } of lessons) {
          const key = `${nth(index).text} ${name === "a.example" ? 443 : 8443}`;
          expected.set(key, Math.max(expected.get(key) ?? 0, until));
        }
        expect(new Map([...table.openings(box)].map(([key, opening]) => [key, opening.until]))).toEqual(expected);
      }),
    );
  });

  it("is gone where one policy opened it and the other does not, and nowhere else", () => {
    const names = ["a.example", "b.example", "x.b.example"];
    const lesson = fc.record({ name: fc.constantFrom(...names), index: fc.nat(3), until: fc.nat(1000) });
    const texts = fc.subarray([...names, "a.example:22", "b.example:443,8443", "*.b.example", "93.0.0.0/31:443"]);
    fc.assert(
      fc.property(fc.array(lesson, { minLength: 1, maxLength: 20 }), texts, texts, (lessons, first, second) => {
        const table = new LearnedTable();
        for (const { name, index, until } of lessons) table.learn(name, [{ address: nth(index), until }]);
        const [before, next] = [table.openings(allowing(...first)), table.openings(allowing(...second))];
        const gone = table.gone(allowing(...first), next).map(({ address, port }) => `${address.text} ${port}`);
        expect(new Set(gone)).toEqual(new Set([...before.keys()].filter((key) => !next.has(key))));
      }),
    );
  });

  it("is open only by what the policy allows now, and known by its names", () => {
    const table = new LearnedTable();
    table.learn("a.example", [{ address: at("93.184.216.1"), until: 10 }]);
    table.learn("b.example", [{ address: at("93.184.216.1"), until: 20 }, { address: at("2606:2800:220:1::2"), until: 20 }]);
    expect([...table.openings(allowing("a.example")).keys()]).toEqual(["93.184.216.1 443"]);
    expect([...table.openings(allowing("b.example:22,443")).keys()]).toEqual(["93.184.216.1 22", "93.184.216.1 443", "2606:2800:220:1::2 22", "2606:2800:220:1::2 443"]);
    expect([...table.openings(allowing("c.example")).keys()]).toEqual([]);
    expect(table.namesOf("93.184.216.1")).toEqual(["a.example", "b.example"]);
    expect(table.namesOf("93.184.216.9")).toEqual([]);
    expect([table.count(5), table.count(15), table.count(25)]).toEqual([{ names: 2, addresses: 2 }, { names: 1, addresses: 2 }, { names: 0, addresses: 0 }]);
  });

  it("is left alone by the name wall on ports that an entry marks, until no name with such an entry leads there", () => {
    const table = new LearnedTable();
    table.learn("a.example", [{ address: at("93.184.216.1"), until: 10 }]);
    table.learn("b.example", [{ address: at("93.184.216.1"), until: 20 }]);
    const keys = (box: BoxPolicy) => [...table.openings(box)].map(([key, { until }]) => `${key} until ${until}`);
    expect(keys(allowing("tcp://a.example:443", "b.example"))).toEqual(["93.184.216.1 443 until 20", "93.184.216.1 443 direct until 10"]);
    expect(keys(allowing("tcp://a.example:22,443"))).toEqual(["93.184.216.1 22 until 10", "93.184.216.1 22 direct until 10", "93.184.216.1 443 until 10", "93.184.216.1 443 direct until 10"]);
    expect(keys(allowing("a.example", "b.example"))).toEqual(["93.184.216.1 443 until 20"]);
    expect(keys({ ...allowing("tcp://a.example:443"), enforcement: "address" })).toEqual(["93.184.216.1 443 until 10"]);
  });

  it("is bounded, and forgets nothing for what comes later", () => {
    const table = new LearnedTable();
    table.learn("a.example", [{ address: nth(0), until: 1 }]);
    expect(table.countNew("a.example", [nth(0), nth(1), nth(1)].map((address) => ({ address, until: 9 })))).toBe(1);
    expect(table.countNew("b.example", [nth(0)].map((address) => ({ address, until: 9 })))).toBe(1);
    const { room } = table;
    expect(room).toBe(59_999);
    table.learn("b.example", Array.from({ length: room }, (_, index) => ({ address: nth(index), until: 9 })));
    expect(table.room).toBe(0);
    expect(table.openings(allowing("a.example:8443")).size).toBe(1);
    // What is known may live longer all the same.
    table.learn("a.example", [{ address: nth(0), until: 20 }]);
    expect([table.room, table.count(15)]).toEqual([0, { names: 1, addresses: 1 }]);
  });

  it("is forgotten when its name is denied, but for names whose connections were left alone", () => {
    const table = new LearnedTable();
    for (const [index, name] of ["a.example", "b.example", "c.example"].entries()) table.learn(name, [{ address: nth(index), until: 10 }]);
    table.keep(nth(1).text);
    table.forgetDenied(allowing("c.example:8443"));
    expect([0, 1, 2].map((index) => table.namesOf(nth(index).text))).toEqual([[], ["b.example"], ["c.example"]]);
    expect(table.room).toBe(59_998);
    expect([...table.openings(allowing("a.example", "b.example", "c.example")).keys()]).toEqual([`${nth(1).text} 443`, `${nth(2).text} 443`]);
  });
});
