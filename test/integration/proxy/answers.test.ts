import { describe, expect, test } from "vitest";
import { ask } from "./dns-client.ts";
import { FakeUpstream } from "./fake-upstream.ts";
import { allowing, startResolver } from "./resolver-process.ts";

describe("the resolver of a box", () => {
  test("answers an allowed name with the addresses that the keeper opened first", async () => {
    await using upstream = await FakeUpstream.listen("127.53.1.1", ({ name }) => [{ type: "A", name, ttl: 300, data: "93.184.216.34" }]);
    await using resolver = await startResolver(allowing(["api.example.com"]), { upstreams: [upstream.address] });
    const heard = await ask(resolver.port, "api.example.com");
    expect(heard).toMatchObject({ code: "NOERROR", addresses: ["93.184.216.34"] });
    expect(resolver.keeper.learned).toMatchObject([{ name: "api.example.com", addresses: [{ address: "93.184.216.34", ttl: 300 }] }]);
    expect(resolver.readLog()).toMatchObject([{ kind: "decision", host: "api.example.com", action: "allow", addresses: ["93.184.216.34"], seq: 0 }]);
  });

  test.for(["A", "AAAA", "TXT", "ANY", "HTTPS", "AXFR", "PTR"] as const)("says NXDOMAIN to %s of a name that is not allowed, and asks nobody", async (type) => {
    await using upstream = await FakeUpstream.listen("127.53.1.1", ({ name }) => [{ type: "A", name, ttl: 300, data: "93.184.216.34" }]);
    await using resolver = await startResolver(allowing(["api.example.com"]), { upstreams: [upstream.address] });
    const heard = await ask(resolver.port, "Secret.Example.ORG", type);
    expect(heard.code).toBe("NXDOMAIN");
    expect(upstream.names()).toEqual([]);
    expect(resolver.readLog()).toMatchObject([{ host: "secret.example.org", action: "deny", reason: "not_allowed", hint: "agentbox policy allow secret.example.org" }]);
    // The control: the same resolver does ask for what is allowed.
    expect((await ask(resolver.port, "api.example.com")).code).toBe("NOERROR");
    expect(upstream.names()).toEqual(["api.example.com A"]);
  });
});
