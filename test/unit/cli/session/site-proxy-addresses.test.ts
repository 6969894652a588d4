import { expect, test } from "vitest";
import { findSiteProxy, type SiteProxyQuery } from "../../../../cli/session/site-proxy-addresses.ts";
import { ConfigError, ResolveError } from "../../../../policy/errors.ts";
import { DEFAULT_NAME_WALL, emptyDocument, type PolicyDocument } from "../../../../policy/policy-document.ts";

const EMPTY = emptyDocument({ name: "shell", hosts: [], critical: null });

function behind(host: string, more: Partial<PolicyDocument> = {}): PolicyDocument {
  return { ...EMPTY, nameWall: { ...DEFAULT_NAME_WALL, upstream: { host, port: 3128, tls: false } }, ...more };
}

function find(document: PolicyDocument, found: readonly string[] | Error, more: Partial<SiteProxyQuery> = {}): Promise<string[]> {
  const resolve = async (): Promise<string[]> => {
    if (found instanceof Error) throw found;
    return [...found];
  };
  return findSiteProxy({ document, network: { firewall: true, mode: "allowlist" }, gateways: ["172.17.0.1"], source: "config.toml", resolve, ...more });
}

test("a name is as many rules as it has addresses, private ones as well, each once and canonical", async () => {
  expect(await find(behind("proxy.corp"), ["10.0.0.8", "FD00::8", "10.0.0.8"])).toEqual(["10.0.0.8", "fd00::8"]);
  expect(await find(behind("proxy.corp"), Array.from({ length: 40 }, (_, index) => `10.0.0.${index}`))).toHaveLength(8);
});

test("this machine is the gateway of the box's network", async () => {
  expect(await find(behind("host.docker.internal"), new Error("not asked"))).toEqual(["172.17.0.1"]);
});

test.each<[string, PolicyDocument, Partial<SiteProxyQuery>]>([
  ["no site's proxy", EMPTY, {}],
  ["no firewall", behind("proxy.corp"), { network: { firewall: false, mode: "full" } }],
  ["no network", behind("proxy.corp"), { network: { firewall: true, mode: "none" } }],
])("nothing is looked up where there is %s", async (_case, document, more) => {
  expect(await find(document, new Error("asked"), more)).toEqual([]);
});

test("addresses alone stop the start, since whoever may talk to such a proxy has no firewall", async () => {
  const refused = find(behind("proxy.corp", { enforcement: "address" }), ["10.0.0.8"]);
  await expect(refused).rejects.toThrow(ConfigError);
  await expect(refused).rejects.toThrow(/config\.toml: network_proxy\.upstream_proxy needs the name wall/);
});

test.each([
  ["is not found", new Error("ENOTFOUND")],
  ["has no address", []],
])("a name that %s stops the start", async (_case, found) => {
  await expect(find(behind("proxy.corp"), found)).rejects.toThrow(ResolveError);
});

test.each(["127.0.0.1", "::1", "0.0.0.0", "::"])("%s, which in a box is the box itself, stops the start", async (address) => {
  await expect(find(behind("proxy.corp"), ["10.0.0.8", address])).rejects.toThrow(/is the box itself.*host\.docker\.internal/s);
});
