import { mkdirSync, renameSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "dns-packet";
import { describe, expect, test, vi } from "vitest";
import { ask } from "./dns-client.ts";
import { FakeUpstream, type Script } from "./fake-upstream.ts";
import { allowing, startResolver } from "./resolver-process.ts";

const NAME = "api.example.com";
const GOOD = "93.184.216.34";
const honest: Script = ({ name, type }): Answer[] => (type === "A" ? [{ type: "A", name, ttl: 300, data: GOOD }] : []);

describe("the resolver and its keeper", () => {
  test("a client has its answer only when the keeper says that it is done", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    resolver.keeper.verdict = undefined;
    let answered = false;
    const answer = ask(resolver.port, NAME).then((heard) => {
      answered = true;
      return heard;
    });
    await vi.waitFor(() => expect(resolver.keeper.learned).toHaveLength(1));
    // Another question makes a whole round trip meanwhile.
    expect((await ask(resolver.port, "other.example.org")).code).toBe("NXDOMAIN");
    expect(answered).toBe(false);
    resolver.keeper.release();
    expect((await answer).addresses).toEqual([GOOD]);
  });

  test("what the keeper does not open is SERVFAIL, in the log with the reason", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    resolver.keeper.verdict = { ok: false, detail: "the set is full" };
    expect(await ask(resolver.port, NAME)).toMatchObject({ code: "SERVFAIL", addresses: [] });
    expect(resolver.readLog()).toMatchObject([{ host: NAME, action: "deny", detail: "its addresses could not be opened: the set is full" }]);
    resolver.keeper.verdict = { ok: true, detail: "" };
    expect((await ask(resolver.port, NAME)).code).toBe("NOERROR");
  });

  test("without a keeper the resolver ends; its successor on the same sockets goes on with the numbers of the log", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    const before = resolver.pid();
    await ask(resolver.port, NAME);
    const back = resolver.keeper.nextReport();
    resolver.keeper.hangUp();
    await back;
    expect(resolver.pid()).not.toBe(before);
    await ask(resolver.port, NAME);
    await ask(resolver.port, "other.example.org");
    expect(resolver.readLog().map(({ seq }) => seq)).toEqual([0, 1, 2]);
    expect(resolver.keeper.learned).toHaveLength(2);
  });

  test("what the keeper saw joins the log, also right behind a policy", async () => {
    await using resolver = await startResolver(allowing([NAME]));
    const report = resolver.keeper.replace({});
    resolver.keeper.send({ op: "record", entry: { kind: "event", event: "policy-replaced", detail: "by hand", added: [NAME], removed: [] } });
    resolver.keeper.send({ op: "record", entry: { kind: "nonsense" } });
    await report;
    await vi.waitFor(() => expect(resolver.readLog()).toMatchObject([{ kind: "event", event: "policy-replaced", session: "test", seq: 0 }]));
    expect((await ask(resolver.port, "other.example.org")).code).toBe("NXDOMAIN");
  });

  test("killed, it is back on the same sockets", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    const back = resolver.keeper.nextReport();
    process.kill(resolver.pid(), "SIGKILL");
    await back;
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
  });

  test("a new policy counts for what is in the cache; a broken one changes nothing", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    await ask(resolver.port, NAME);
    expect(await resolver.keeper.replace({ document: allowing(["a b"]) })).toMatchObject({ ok: false, version: 2 });
    expect((await ask(resolver.port, NAME)).code).toBe("NOERROR");
    // Still allowed under another policy: opened again before it is answered, without being asked for again.
    expect(await resolver.keeper.replace({ document: allowing([`${NAME}:8443`]) })).toMatchObject({ ok: true, version: 3 });
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
    expect(resolver.keeper.learned).toHaveLength(2);
    expect(upstream.names()).toEqual([`${NAME} A`]);
    await resolver.keeper.replace({ document: allowing(["new.example.com"]) });
    expect((await ask(resolver.port, NAME)).code).toBe("NXDOMAIN");
    expect((await ask(resolver.port, "new.example.com")).code).toBe("NOERROR");
    expect(upstream.names()).toEqual([`${NAME} A`, "new.example.com A"]);
  });

  test("private names are resolved by the engine's resolver once, pinned, and stand for that over policies, whatever it says later", async () => {
    let address = "172.20.0.5";
    await using engine = await FakeUpstream.listen("127.53.4.2", ({ name, type }) => (type === "A" ? [{ type: "A", name, ttl: 1, data: address }] : []));
    const document = allowing([NAME], { private: [{ host: "db", ports: [5432] }] });
    await using resolver = await startResolver(document, { engineResolver: engine.address });
    expect((await ask(resolver.port, "db")).addresses).toEqual(["172.20.0.5"]);
    expect(resolver.keeper.pinned).toMatchObject([{ name: "db", addresses: ["172.20.0.5"] }]);
    expect(engine.asked.every(({ transport }) => transport === "tcp")).toBe(true);
    const asked = engine.names();
    address = "172.20.0.66";
    // The keeper did not have the pin when it sent this: it hears the same again.
    await resolver.keeper.replace({ document: { ...document, allowPrivate: [{ text: "172.20.0.0/24" }] } });
    expect((await ask(resolver.port, "db")).addresses).toEqual(["172.20.0.5"]);
    expect(resolver.keeper.pinned.map(({ addresses }) => addresses)).toEqual([["172.20.0.5"], ["172.20.0.5"]]);
    // A name that no policy had for a while too.
    await resolver.keeper.replace({ document: allowing([NAME]) });
    expect((await ask(resolver.port, "db")).code).toBe("NXDOMAIN");
    await resolver.keeper.replace({ document });
    expect((await ask(resolver.port, "db")).addresses).toEqual(["172.20.0.5"]);
    expect(engine.names()).toEqual(asked);
  });

  test("a private name that the keeper has pinned is not asked for, by a successor neither; what the policy does not let it lead to is left out", async () => {
    await using engine = await FakeUpstream.listen("127.53.4.2", ({ name, type }) => (type === "A" ? [{ type: "A", name, ttl: 1, data: "172.20.0.66" }] : []));
    const document = allowing([NAME], { private: [{ host: "db", ports: [5432] }, { host: "gone", ports: [5432] }] });
    await using resolver = await startResolver(document, { engineResolver: engine.address, pins: { db: ["172.20.0.5", "169.254.169.254"], gone: [] } });
    for (const _ of ["the first", "its successor"]) {
      expect(await ask(resolver.port, "db")).toMatchObject({ code: "NOERROR", addresses: ["172.20.0.5"] });
      expect(await ask(resolver.port, "gone")).toMatchObject({ code: "NOERROR", addresses: [] });
      const back = resolver.keeper.nextReport();
      process.kill(resolver.pid(), "SIGKILL");
      await back;
    }
    expect(engine.asked).toEqual([]);
    expect(resolver.keeper.pinned).toEqual([]);
    // Where the keeper leaves one out, the owner has another policy.
    await resolver.keeper.replace({ pins: { db: ["172.20.0.5"] } });
    expect((await ask(resolver.port, "gone")).addresses).toEqual(["172.20.0.66"]);
    expect(resolver.keeper.pinned).toMatchObject([{ name: "gone", addresses: ["172.20.0.66"] }]);
  });

  test("names of the hosts file are answered from it; only allowed ones are opened", async () => {
    await using resolver = await startResolver(allowing([NAME]), { hosts: { localhost: ["127.0.0.1", "::1"], [NAME]: [GOOD] } });
    expect((await ask(resolver.port, "localhost", "AAAA")).addresses).toEqual(["::1"]);
    expect((await ask(resolver.port, NAME)).addresses).toEqual([GOOD]);
    expect(resolver.keeper.learned).toMatchObject([{ name: NAME }]);
  });

  test("in report mode a name that is not allowed is answered and written down as such, a blocked one is not", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    const blocks = [{ label: "config", words: [{ text: "blocked.example.org" }] }];
    await using resolver = await startResolver(allowing([NAME], { report: true, blocks }), { upstreams: [upstream.address] });
    expect((await ask(resolver.port, "other.example.org")).addresses).toEqual([GOOD]);
    expect((await ask(resolver.port, "blocked.example.org")).code).toBe("NXDOMAIN");
    expect(resolver.readLog()).toMatchObject([
      { host: "other.example.org", action: "report", reason: "not_allowed" },
      { host: "blocked.example.org", action: "deny", reason: "denied" },
    ]);
  });
});

describe("when something fails", () => {
  test("upstreams that do not answer: what is cached goes on being answered, and the status says so", async () => {
    let down = false;
    await using upstream = await FakeUpstream.listen("127.53.4.1", ({ name }) => (down ? undefined : [{ type: "A", name, ttl: 1, data: GOOD }]));
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    await ask(resolver.port, NAME);
    down = true;
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect(await ask(resolver.port, NAME)).toMatchObject({ code: "NOERROR", addresses: [GOOD] });
    expect(resolver.keeper.degraded).toEqual([`the upstream resolver ${upstream.address} does not answer`]);
    expect(resolver.readLog().map((line) => (line.kind === "event" ? line.event : line.kind === "decision" ? line.action : line.kind))).toEqual(["allow", "upstream-failing"]);
  });

  test("a log that cannot be written makes every answer SERVFAIL until it can", async () => {
    await using upstream = await FakeUpstream.listen("127.53.4.1", honest);
    await using resolver = await startResolver(allowing([NAME]), { upstreams: [upstream.address] });
    const log = join(resolver.dir, "decisions.jsonl");
    renameSync(log, `${log}.away`);
    mkdirSync(log);
    const back = resolver.keeper.nextReport();
    process.kill(resolver.pid(), "SIGKILL");
    await back;
    expect((await ask(resolver.port, NAME)).code).toBe("SERVFAIL");
    expect((await ask(resolver.port, "other.example.org")).code).toBe("SERVFAIL");
    expect(resolver.keeper.degraded.join()).toContain("the decision log cannot be written");
    rmdirSync(log);
    await vi.waitFor(() => expect(resolver.keeper.degraded).toEqual([]));
    expect((await ask(resolver.port, NAME)).code).toBe("NOERROR");
  });
});
