import { describe, expect, test, vi } from "vitest";
import { ask } from "./dns-client.ts";
import { FakeUpstream, type Script } from "./fake-upstream.ts";
import { allowing, startResolver } from "./resolver-process.ts";

// What changes while the resolver runs: its upstreams, the addresses of a name, the time of an entry.

const GOOD = "93.184.216.34";
const honest: Script = ({ name, type }) => (type === "A" ? [{ type: "A", name, ttl: 300, data: GOOD }] : []);

describe("upstream resolvers", () => {
  test("that fail give way to the next, and are preferred again when they are back", async () => {
    let down = true;
    await using first = await FakeUpstream.listen("127.53.6.1", (asked, query) => (down ? undefined : honest(asked, query)));
    await using second = await FakeUpstream.listen("127.53.6.2", honest);
    await using resolver = await startResolver(allowing(["*.example.com"]), { upstreams: [first.address, second.address] });
    for (const name of ["a", "b"]) expect((await ask(resolver.port, `${name}.example.com`)).addresses).toEqual([GOOD]);
    await vi.waitFor(() => expect(resolver.keeper.degraded).toEqual([`the upstream resolver ${first.address} does not answer`]));
    const before = first.asked.length;
    expect((await ask(resolver.port, "c.example.com")).addresses).toEqual([GOOD]);
    expect(first.asked).toHaveLength(before);
    down = false;
    let names = 0;
    await vi.waitFor(
      async () => {
        names += 1;
        expect((await ask(resolver.port, `again${names}.example.com`)).addresses).toEqual([GOOD]);
        expect(resolver.keeper.degraded).toEqual([]);
      },
      { timeout: 20_000, interval: 200 },
    );
    const others = second.asked.length;
    expect((await ask(resolver.port, "last.example.com")).addresses).toEqual([GOOD]);
    expect(second.asked).toHaveLength(others);
    const events = resolver.readLog().flatMap((line) => (line.kind === "event" ? [line.event] : []));
    expect(events).toEqual(["upstream-failing", "upstream-back"]);
  });

  test("are asked only for allowed names, also to see whether they are back", async () => {
    await using first = await FakeUpstream.listen("127.53.6.1", () => undefined);
    await using second = await FakeUpstream.listen("127.53.6.2", honest);
    await using resolver = await startResolver(allowing(["*.example.com"]), { upstreams: [first.address, second.address] });
    for (const name of ["a.example.com", "a.evil.example.org", "b.example.com", "b.evil.example.org"]) await ask(resolver.port, name);
    expect(first.names().concat(second.names()).filter((name) => !name.endsWith(".example.com A"))).toEqual([]);
    expect(second.names()).toEqual(["a.example.com A", "b.example.com A"]);
  });
});

describe("names", () => {
  test("that rotate with a TTL of 0 are opened anew with each answer", async () => {
    let turn = 0;
    const script: Script = ({ name }) => [{ type: "A", name, ttl: 0, data: `93.184.217.${(turn += 1)}` }];
    await using upstream = await FakeUpstream.listen("127.53.6.1", script);
    await using resolver = await startResolver(allowing(["api.example.com"]), { upstreams: [upstream.address] });
    const heard: string[] = [];
    for (let index = 0; index < 20; index += 1) heard.push(...(await ask(resolver.port, "api.example.com")).addresses);
    expect(new Set(heard).size).toBe(20);
    expect(resolver.keeper.learned.flatMap(({ addresses }) => addresses.map(({ address }) => address))).toEqual(heard);
  });

  test("whose time is over do not exist any more, without a word of the keeper", async () => {
    await using upstream = await FakeUpstream.listen("127.53.6.1", honest);
    const words = [{ text: "once.example.com", until: Date.now() + 2000 }, { text: "api.example.com" }];
    await using resolver = await startResolver(allowing([], { sources: [{ label: "policy allow", surface: "list", words }] }), { upstreams: [upstream.address] });
    expect((await ask(resolver.port, "once.example.com")).addresses).toEqual([GOOD]);
    await vi.waitFor(async () => expect((await ask(resolver.port, "once.example.com")).code).toBe("NXDOMAIN"), { timeout: 10_000, interval: 100 });
    expect((await ask(resolver.port, "api.example.com")).addresses).toEqual([GOOD]);
    expect(upstream.names()).toEqual(["once.example.com A", "api.example.com A"]);
  });
});
