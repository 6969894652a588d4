import { describe, expect, test } from "vitest";
import { decide } from "../../../policy/decide.ts";
import { ConfigError, renderComplaint } from "../../../policy/errors.ts";
import { parseAddress } from "../../../policy/address.ts";
import { buildProxyPolicy, type ProxyPolicy, type ProxyPolicyInput } from "../../../policy/proxy-config-policy.ts";
import { parseProxyConfig, type ProxySettings, readProxySettings } from "../../../policy/proxy-config.ts";

const isPublicSuffix = (name: string): boolean => name === "com" || name === "co.uk";

function read(text: string): ProxySettings {
  return readProxySettings(parseProxyConfig({ file: "proxy.toml", text, isPublicSuffix }));
}

function build(text: string, rest: Partial<ProxyPolicyInput> = {}): ProxyPolicy {
  return buildProxyPolicy({ parsed: parseProxyConfig({ file: "proxy.toml", text, isPublicSuffix }), own: [], isPublicSuffix, now: 0, ...rest });
}

function mistakes(text: string): string[] {
  try {
    read(text);
    build(text);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.complaints.map(renderComplaint);
    throw error;
  }
}

test("an empty file has the defaults of the specification, and is switched off", () => {
  expect(read("")).toEqual({
    enabled: false,
    approve: false,
    http: { address: "127.0.0.1", port: 3128 },
    socks: { address: "127.0.0.1", port: 8081 },
    admin: { address: "127.0.0.1", port: 8080 },
    upstream: undefined,
    intercept: false,
    inspect: false,
    maxBodyBytes: 4096,
    caCertPath: "network_proxy/mitm/ca.pem",
    caKeyPath: "network_proxy/mitm/ca.key",
    warnings: [],
  });
});

test("tables of other programs are ignored, whatever is in them", () => {
  const text = 'model = "x"\n[mcp_servers.docs]\ncommand = "npx"\n[network]\nno_such_key = 1\n[network_proxy]\nenabled = true\n';
  expect(read(text).enabled).toBe(true);
});

test.each([
  { name: "an unknown key, with the nearest known one", text: "[network_proxy]\nenabeld = true\n", said: /^proxy\.toml:2:1: \[network_proxy\] has no key "enabeld"; .*did you mean enabled\?\n {2}2 \| enabeld = true\n {4}\| \^{7}/s },
  { name: "an unknown key of the policy", text: "[network_proxy.policy]\nallow_domains = []\n", said: /:2:1: \[network_proxy\.policy\] has no key "allow_domains"; .*did you mean allowed_domains\?/ },
  { name: "a mode that is none", text: "[network_proxy]\nmode = 'limitd'\n", said: /:2:8: network_proxy\.mode is "limitd"; expected "limited" or "full"; fix: did you mean limited\?/ },
  { name: "a wildcard over a public suffix", text: "[network_proxy.policy]\nallowed_domains = ['*.co.uk']\n", said: /:2:20: "\*\.co\.uk" opens every domain/ },
  { name: "a scheme", text: "[network_proxy.policy]\nallowed_domains = ['https://a.example']\n", said: /:2:20: "https:\/\/a\.example" has the scheme/ },
  { name: "a public block as private", text: "[network_proxy.policy]\nallow_private = ['8.8.8.0/24']\n", said: /"8\.8\.8\.0\/24" is not a private block/ },
  { name: "a listener without a port", text: "[network_proxy]\nadmin_url = 'http://127.0.0.1'\n", said: /:2:13: .*is not the address of a listener/ },
  { name: "a listener by name", text: "[network_proxy]\nproxy_url = 'http://proxy.example:3128'\n", said: /names a host/ },
  { name: "a socket by a relative path", text: "[network_proxy]\nadmin_url = 'unix:run/x.sock'\n", said: /is not a socket; expected unix:\/PATH/ },
  { name: "two listeners in one place", text: "[network_proxy]\nproxy_url = 'http://localhost:8080'\n", said: /^proxy\.toml:1:2: proxy_url and admin_url both name port 8080/ },
  { name: "a password of the site's proxy is not repeated", text: "[network_proxy]\nupstream_proxy = 'http://me:hunter2@corp'\n", said: /:2:18: this is not the address of a proxy(?!.*hunter2)/s },
])("refuses $name", ({ text, said }) => {
  expect(mistakes(text).join("\n")).toMatch(said);
});

test("all mistakes of a file are told at once", () => {
  expect(mistakes("[network_proxy]\nmode = 'x'\nenabled = 1\n[network_proxy.policy]\nallowed_domains = ['a b']\n")).toHaveLength(3);
});

describe("listeners", () => {
  test.each([
    { name: "all addresses", url: "http://0.0.0.0:3128" },
    { name: "all addresses of IPv6", url: "http://[::]:3128" },
    { name: "an address of the network", url: "http://192.168.1.5:3128" },
  ])("$name is clamped to loopback, with a warning that names the key", ({ url }) => {
    const settings = read(`[network_proxy]\nproxy_url = '${url}'\n`);
    expect(settings.http).toEqual({ address: "127.0.0.1", port: 3128 });
    expect(settings.warnings.join("\n")).toMatch(/^proxy_url names .* which is not loopback: it listens on 127\.0\.0\.1:3128; dangerously_allow_non_loopback_proxy/);
  });

  test("the dangerous key takes it as written, and says what that means", () => {
    const settings = read("[network_proxy]\nproxy_url = 'http://0.0.0.0:3128'\ndangerously_allow_non_loopback_proxy = true\n");
    expect(settings.http.address).toBe("0.0.0.0");
    expect(settings.warnings).toEqual(["proxy_url is http://0.0.0.0:3128: whoever reaches that address over the network may use it"]);
  });

  test("the key of the proxy says nothing about the admin API", () => {
    const settings = read("[network_proxy]\nadmin_url = 'http://0.0.0.0:8080'\ndangerously_allow_non_loopback_proxy = true\n");
    expect(settings.admin).toEqual({ address: "127.0.0.1", port: 8080 });
  });

  test("every loopback address is taken as written", () => {
    expect(read("[network_proxy]\nproxy_url = 'http://[::1]:3128'\nsocks_url = 'socks5h://127.0.0.2:80'\nadmin_url = 'unix:/run/x.sock'\n")).toMatchObject({ http: { address: "::1", port: 3128 }, socks: { address: "127.0.0.2", port: 80 }, admin: { path: "/run/x.sock" }, warnings: [] });
  });

  test("port 80 of the site's proxy is not lost, and its password stays out of messages", () => {
    expect(read("[network_proxy]\nupstream_proxy = 'http://me:secret@proxy.corp:80'\n").upstream).toMatchObject({ port: 80, user: "me", password: "secret", tls: false });
  });

  test("SOCKS5 can be switched off", () => {
    expect(read("[network_proxy]\nenable_socks5 = false\nsocks_url = 'http://127.0.0.1:3128'\n").socks).toBeUndefined();
  });
});

const LISTS = "[network_proxy.policy]\nallowed_domains = ['*.a.example', 'b.example:8443', 'http://c.example', 'localhost:3000', '127.0.0.1:9', 'nested.example']\ndenied_domains = ['bad.a.example', '*.nested.example']\n";

describe("which hosts are let through", () => {
  test.each([
    { name: "a name below a wildcard", host: "x.y.a.example", port: 443, reason: "allowed" },
    { name: "its apex", host: "a.example", port: 443, reason: "allowed" },
    { name: "another port", host: "a.example", port: 80, reason: "not_allowed" },
    { name: "the port that is named", host: "b.example", port: 8443, reason: "allowed" },
    { name: "443 where another port is named", host: "b.example", port: 443, reason: "not_allowed" },
    { name: "80 of http://", host: "c.example", port: 80, reason: "allowed" },
    { name: "443 of http://", host: "c.example", port: 443, reason: "allowed" },
    { name: "what is denied below a wildcard", host: "bad.a.example", port: 443, reason: "denied" },
    { name: "the apex of what is denied", host: "nested.example", port: 443, reason: "denied" },
    { name: "what nobody named", host: "z.example", port: 443, reason: "not_allowed" },
  ])("$name", ({ host, port, reason }) => {
    expect(decide(build(LISTS).policy, { host, port }).reason).toBe(reason);
  });

  test.each([
    { name: "without a list nothing is", text: "", host: "a.example" },
    { name: "an empty list lets nothing through", text: "[network_proxy.policy]\nallowed_domains = []\n", host: "a.example" },
  ])("$name", ({ text, host }) => {
    expect(decide(build(text).policy, { host, port: 443 }).reason).toBe("not_allowed");
  });

  test.each([
    { name: "a listed name that leads to loopback is refused", local: false, host: "localhost", port: 3000, reason: "not_allowed_local" },
    { name: "allow_local_binding lets a listed name lead there", local: true, host: "localhost", port: 3000, reason: "allowed" },
    { name: "but no name that is not listed", local: true, host: "z.example", port: 443, reason: "not_allowed" },
    { name: "the literal that is listed needs no such key", local: false, host: "127.0.0.1", port: 9, reason: "allowed" },
    { name: "and with the key others are as closed as before", local: true, host: "127.0.0.1", port: 10, reason: "not_allowed" },
  ])("loopback: $name", ({ local, host, port, reason }) => {
    const address = parseAddress("127.0.0.1");
    if (!address.ok) throw new Error("no address");
    const { policy } = build(`${LISTS}allow_local_binding = ${local}\n`);
    expect(decide(policy, { host, port, address: address.value }).reason).toBe(reason);
  });

  test.each(["127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "localhost"])("the proxy's own listeners are closed to its clients although the file allows %s", (host) => {
    const address = parseAddress(host === "localhost" ? "127.0.0.1" : host);
    if (!address.ok) throw new Error("no address");
    const word = host.includes(":") ? `[${host}]:8080,8000` : `${host}:8080,8000`;
    const { policy } = build(`[network_proxy.policy]\nallow_local_binding = true\nallowed_domains = ['${word}']\n`, { own: [{ address: "127.0.0.1", port: 8080 }] });
    expect(decide(policy, { host, port: 8080, address: address.value }).reason).toBe("denied");
    expect(decide(policy, { host, port: 8000, address: address.value }).reason).toBe("allowed");
  });

  test("the user's own denied_domains hold beside a project's file", () => {
    const user = parseProxyConfig({ file: "~/config.toml", text: "[network_proxy.policy]\ndenied_domains = ['b.example']\nallowed_domains = ['z.example']\n", isPublicSuffix });
    const { policy } = build(LISTS, { user });
    expect(decide(policy, { host: "b.example", port: 8443 })).toMatchObject({ reason: "denied", rule: { origins: [{ label: "~/config.toml" }] } });
    expect(decide(policy, { host: "z.example", port: 443 }).reason).toBe("not_allowed");
  });

  test("a word of the session holds until its time is over, and no longer; a deny of the file wins over it", () => {
    const session = [{ text: "once.example", until: 100 }, { text: "session.example" }, { text: "bad.a.example" }];
    const early = build(LISTS, { session, now: 99 });
    expect(early.nextExpiry).toBe(100);
    expect(decide(early.policy, { host: "once.example", port: 443 }).reason).toBe("allowed");
    expect(decide(early.policy, { host: "bad.a.example", port: 443 }).reason).toBe("denied");
    const late = build(LISTS, { session, now: 100 });
    expect(late.nextExpiry).toBeUndefined();
    expect(decide(late.policy, { host: "once.example", port: 443 }).reason).toBe("not_allowed");
    expect(decide(late.policy, { host: "session.example", port: 443 }).reason).toBe("allowed");
  });

  test.each([
    { name: "the file's", file: "limited", mode: undefined, methods: "limited" },
    { name: "the one that was set by the API", file: "limited", mode: "full" as const, methods: "full" },
    { name: "full without either", file: undefined, mode: undefined, methods: "full" },
  ])("the mode is $name", ({ file, mode, methods }) => {
    expect(build(file === undefined ? "" : `[network_proxy]\nmode = '${file}'\n`, { mode }).policy.methods).toBe(methods);
  });

  test("TLS is left alone for the hosts of passthrough only", () => {
    const { passesThrough } = build("[network_proxy.mitm]\npassthrough = ['*.pinned.example']\n");
    expect(passesThrough({ kind: "name", name: "a.pinned.example" })).toBe(true);
    expect(passesThrough({ kind: "name", name: "a.example" })).toBe(false);
  });

  test("what opens the machine's own services is said", () => {
    expect(build(LISTS).warnings.join("\n")).toMatch(/127\.0\.0\.1:9 opens addresses that are not on the internet/);
  });
});
