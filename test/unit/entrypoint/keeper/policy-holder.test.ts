import { describe, expect, it } from "vitest";
import { refuseFixed } from "../../../../entrypoint/keeper/policy-holder.ts";
import { emptyDocument, type NameWall, type PolicyDocument } from "../../../../policy/policy-document.ts";

const NAME = emptyDocument({ name: "shell", hosts: [], critical: null });
const ADDRESS: PolicyDocument = { ...NAME, enforcement: "address" };
const UPSTREAM = { host: "proxy.corp.example", port: 8080, tls: false };

/** A document whose name wall differs. */
function wall(change: Partial<NameWall>, from = NAME): PolicyDocument {
  return { ...from, nameWall: { ...from.nameWall, ...change } };
}

describe("what of a running box cannot change", () => {
  it.each<[string, PolicyDocument, PolicyDocument, string[]]>([
    ["nothing, where nothing changed", NAME, NAME, []],
    ["whether port 22 is open", NAME, { ...NAME, ssh: "any" }, ["network.ssh = listed"]],
    ["report mode", NAME, { ...NAME, report: true }, ["network.report = false"]],
    ["who decides, and that alone is said", NAME, wall({ httpPort: 1 }, ADDRESS), ["network.enforcement = name"]],
    ["whether TLS is opened", NAME, wall({ intercept: true }), ["network_proxy.mitm.enabled = false"]],
    ["the port of the HTTP proxy", NAME, wall({ httpPort: 3129 }), ["network_proxy.proxy_url = 3128"]],
    ["whether there is a SOCKS proxy", NAME, wall({ socksPort: null }), ["network_proxy.socks_url = 8081"]],
    ["the site's proxy", wall({ upstream: UPSTREAM }), wall({ upstream: { ...UPSTREAM, tls: true } }), ["network_proxy.upstream_proxy = http://proxy.corp.example:8080"]],
    ["not what nobody reads where addresses decide", ADDRESS, wall({ httpPort: 1, intercept: true }, ADDRESS), []],
    ["not what the proxy alone knows", NAME, { ...wall({ methods: "limited", inspect: true, maxBodyBytes: 1, ech: "refuse", passthrough: [{ text: "a.example" }] }), base: "deny-list" }, []],
  ])("is %s", (_case, before, after, kept) => {
    expect(refuseFixed(before, after).map(({ expected }) => expected)).toEqual(kept.map((text) => `${text}, as at its start`));
  });
});
