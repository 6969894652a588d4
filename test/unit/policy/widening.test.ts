import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../policy/config-file.ts";
import { compareTrust } from "../../../policy/widening.ts";

const FILE = ".agentbox/config.toml";
const HOSTS = ".agentbox/hosts.txt";

function widenings(before: string | undefined, after: string, user = ""): readonly string[] {
  return compareTrust(before === undefined ? undefined : [{ name: FILE, text: before }], [{ name: FILE, text: after }], parseConfig({ file: "user", text: user }).config).widenings;
}

function difference(before: string | undefined, after: string): string {
  return compareTrust(before === undefined ? undefined : [{ name: FILE, text: before }], [{ name: FILE, text: after }], {}).difference;
}

const nets = (text: string): string => `[network]\n${text}\n`;

describe("what only removes needs no trust:", () => {
  test.each([
    { name: "an empty file where nothing was", before: undefined, after: "" },
    { name: "blocks alone", before: undefined, after: nets("block_hosts = ['*.example.com']") },
    { name: "a deny rule alone", before: undefined, after: nets("rules = [{ domain = '*.example.com', action = 'deny' }]") },
    { name: "comments", before: nets(""), after: nets("# allow_hosts = ['a.example.com']") },
    { name: "a host less", before: nets("allow_hosts = ['a.example.com', 'b.example.com']"), after: nets("allow_hosts = ['a.example.com']") },
    { name: "the same host in another form", before: nets("allow_hosts = ['a.example.com']"), after: nets("allow_hosts = [{ host = 'A.example.com', ports = [443] }]") },
    { name: "a host below a wildcard that was there", before: nets("allow_hosts = ['*.example.com']"), after: nets("allow_hosts = ['a.example.com']") },
    { name: "a port less", before: nets("allow_hosts = ['a.example.com:80,443']"), after: nets("allow_hosts = ['a.example.com']") },
    { name: "a smaller block", before: nets("allow_hosts = ['192.0.2.0/24']"), after: nets("allow_hosts = ['192.0.2.1']") },
    { name: "a preset less", before: nets("presets = ['rust', 'go']"), after: nets("presets = ['go']") },
    { name: "the preset lockdown", before: nets(""), after: nets("presets = ['lockdown']") },
    { name: "mode none alone", before: undefined, after: nets("mode = 'none'") },
    { name: "mode none in the place of a list with much else", before: nets("ssh = 'off'\nallow_hosts = ['a.example.com']\nblock_hosts = ['b.example.com']"), after: nets("mode = 'none'") },
    { name: "mode none in the place of the user's strict list", before: undefined, after: nets("mode = 'none'"), user: nets("ssh = 'off'\ndns = ['9.9.9.9']") },
    { name: "mode allowlist, which the table means anyway", before: nets(""), after: nets("mode = 'allowlist'") },
    { name: "a private block less", before: nets("allow_private = ['10.0.0.0/8']"), after: nets("") },
    { name: "an allow rule less", before: nets("rules = [{ domain = 'a.example.com', action = 'allow' }, { domain = 'b.example.com', action = 'allow' }]"), after: nets("rules = [{ domain = 'b.example.com', action = 'allow' }]") },
    { name: "a deny rule more, between others", before: nets("rules = [{ domain = 'a.example.com', action = 'allow' }, { domain = 'b.example.com', action = 'allow' }]"), after: nets("rules = [{ domain = 'a.example.com', action = 'allow' }, { domain = 'c.example.com', action = 'deny' }, { domain = 'b.example.com', action = 'allow' }]") },
    { name: "a port to publish less", before: "[box]\nports = ['80', '81']", after: "[box]\nports = ['81']" },
    { name: "a variable less", before: "[box]\nenv = { A = '1' }", after: "[box]\n" },
    { name: "the end of report mode", before: nets("report = true"), after: nets("") },
    { name: "required, which does not count here", before: undefined, after: nets("required = true") },
    { name: "a block that the user's own file has anyway", before: nets("block_hosts = ['a.example.com']"), after: nets(""), user: nets("block_hosts = ['A.example.com']") },
    { name: "a denied domain of the proxy more, an allowed one less", before: "[network_proxy.policy]\nallowed_domains = ['a.example.com']", after: "[network_proxy.policy]\nallowed_domains = []\ndenied_domains = ['b.example.com']" },
    { name: "what the user's own file says as well", before: undefined, after: nets("mode = 'none'"), user: nets("mode = 'none'") },
  ])("$name", ({ before, after, user }) => {
    expect(widenings(before, after, user)).toEqual([]);
  });
});

describe("what widens is told:", () => {
  test.each([
    { name: "a host", before: nets(""), after: nets("allow_hosts = ['api.example.com']"), said: "allow_hosts: + api.example.com" },
    { name: "a host in a new file", before: undefined, after: nets("allow_hosts = ['api.example.com']"), said: "allow_hosts: + api.example.com" },
    { name: "a wildcard in place of a host", before: nets("allow_hosts = ['a.example.com']"), after: nets("allow_hosts = ['*.example.com']"), said: "allow_hosts: + **.example.com" },
    { name: "a port", before: nets("allow_hosts = ['a.example.com']"), after: nets("allow_hosts = ['a.example.com:443,22']"), said: "allow_hosts: + a.example.com:22,443" },
    { name: "a private host", before: nets("allow_hosts = ['db.example.com:5432']"), after: nets("allow_hosts = [{ host = 'db.example.com', ports = [5432], private = true }]"), said: "allow_hosts: + db.example.com:5432 (private)" },
    { name: "an allow_file that was not read", before: nets(""), after: nets("allow_file = 'x.txt'"), said: "allow_file: + x.txt" },
    { name: "a preset", before: nets(""), after: nets("presets = ['rust']"), said: "presets: + rust" },
    { name: "a block less", before: nets("block_hosts = ['a.example.com']"), after: nets(""), said: "block_hosts: - a.example.com" },
    { name: "an allow rule", before: nets(""), after: nets("rules = [{ domain = 'a.example.com', action = 'allow', ports = [8080] }]"), said: "rules: + allow a.example.com:8080" },
    { name: "a deny rule less", before: nets("rules = [{ domain = 'a.example.com', action = 'deny' }]"), after: nets(""), said: "rules: - deny a.example.com" },
    { name: "another order of rules", before: nets("rules = [{ domain = 'a.example.com', action = 'deny' }, { domain = '*.example.com', action = 'allow' }]"), after: nets("rules = [{ domain = '*.example.com', action = 'allow' }, { domain = 'a.example.com', action = 'deny' }]"), said: "rules: another order" },
    { name: "a host beside mode none, for the day when the mode goes", before: nets(""), after: nets("mode = 'none'\nallow_hosts = ['a.example.com']"), said: "allow_hosts: + a.example.com" },
    { name: "mode none taken out", before: nets("mode = 'none'"), after: nets("block_hosts = ['a.example.com']"), said: "mode: none → allowlist (the [network] table)" },
    { name: "mode full where nothing was", before: undefined, after: nets("mode = 'full'"), said: "mode: (not set) → full" },
    { name: "mode full", before: nets(""), after: nets("mode = 'full'"), said: 'mode: allowlist → full (mode = "full")' },
    { name: "the preset unrestricted", before: nets(""), after: nets("presets = ['unrestricted']"), said: ["mode: allowlist → full (the preset unrestricted)", "presets: + unrestricted"] },
    { name: "the only rule left allows everything", before: nets("rules = [{ domain = 'a.example.com', action = 'deny' }, { domain = '*', action = 'allow' }]"), after: nets("rules = [{ domain = '*', action = 'allow' }]"), said: ["mode: allowlist → full (the only rule, which allows *)", "rules: - deny a.example.com"] },
    { name: "lockdown taken out", before: nets("presets = ['lockdown']"), after: nets(""), said: "mode: none → allowlist (the [network] table)" },
    { name: "the table [network] taken out", before: nets(""), after: "", said: "mode: allowlist → full (there is no [network] table)" },
    { name: "an empty file in the place of the user's strict one", before: undefined, after: "", user: nets("mode = 'none'"), said: "mode: none → full (there is no [network] table)" },
    { name: "a file that leaves out the user's topology", before: undefined, after: nets(""), user: nets("topology = 'sidecar'"), said: "topology: sidecar → (not set)" },
    { name: "a file that leaves out the user's limits", before: undefined, after: nets(""), user: `${nets("")}[box]\nmemory = '2g'`, said: "[box] memory: 2g → (not set)" },
    { name: "port 22", before: nets(""), after: nets("ssh = 'any'"), said: "ssh: (not set) → any" },
    { name: "port 22, closed before", before: nets("ssh = 'off'"), after: nets(""), said: "ssh: off → (not set)" },
    { name: "private addresses", before: nets(""), after: nets("allow_private = ['10.0.0.0/8']"), said: "allow_private: + 10.0.0.0/8" },
    { name: "other resolvers", before: nets(""), after: nets("dns = ['192.0.2.53']"), said: "dns: (not set) → 192.0.2.53" },
    { name: "fewer critical services", before: nets("critical = ['a.example.com', 'b.example.com']"), after: nets("critical = ['a.example.com']"), said: "critical: a.example.com, b.example.com → a.example.com" },
    { name: "report mode", before: nets(""), after: nets("report = true"), said: "report: lets everything through" },
    { name: "a published port", before: "", after: "[box]\nports = ['8080']", said: "[box] ports: + 8080" },
    { name: "a mounted directory", before: "", after: "[box]\nadd_dirs = ['/srv']", said: "[box] add_dirs: + /srv" },
    { name: "a path that becomes writable", before: "", after: "[workspace]\nwritable = ['.vscode']", said: "[workspace] writable: + .vscode" },
    { name: "another image", before: "", after: "[build]\nbase = 'evil/image'", said: "[build] base: (not set) → evil/image" },
    { name: "a variable, without its value", before: "", after: "[box]\nenv = { TOKEN = 's3cret' }", said: "[box] env: + TOKEN" },
    { name: "a changed variable, without its value", before: "[box]\nenv = { TOKEN = 'a' }", after: "[box]\nenv = { TOKEN = 's3cret' }", said: "[box] env: TOKEN changed" },
    { name: "the address wall alone in the place of all three", before: nets(""), after: nets("enforcement = 'address'"), said: "enforcement: (not set) → address" },
    { name: "a domain of the proxy", before: "", after: "[network_proxy.policy]\nallowed_domains = ['a.example.com']", said: "[network_proxy.policy] allowed_domains: + a.example.com" },
    { name: "a denied domain less", before: "[network_proxy.policy]\ndenied_domains = ['a.example.com', 'b.example.com']", after: "[network_proxy.policy]\ndenied_domains = ['b.example.com']", said: "[network_proxy.policy] denied_domains: - a.example.com" },
    { name: "a socket of the host", before: "", after: "[network_proxy.policy]\nallow_unix_sockets = ['ssh-agent']", said: "[network_proxy.policy] allow_unix_sockets: + ssh-agent" },
    { name: "all methods instead of some", before: "[network_proxy]\nmode = 'limited'", after: "[network_proxy]\nmode = 'full'", said: "[network_proxy] mode: limited → full" },
    { name: "a host whose TLS is left alone", before: "[network_proxy.mitm]\nenabled = true", after: "[network_proxy.mitm]\nenabled = true\npassthrough = ['a.example.com']", said: "[network_proxy.mitm] passthrough: + a.example.com" },
    { name: "the site's proxy, without its password", before: "", after: "[network_proxy]\nupstream_proxy = 'http://u:s3cret@proxy.example.com:3128'", said: "[network_proxy] upstream_proxy: new" },
    { name: "a rule of the file guard", before: "", after: "[[sandbox.rules]]\nid = 'a'\naction = 'deny'", said: '[sandbox] rules: + {"id":"a","action":"deny"}' },
    { name: "a rule of the file guard less", before: "[[sandbox.rules]]\nid = 'a'\naction = 'deny'", after: "", said: '[sandbox] rules: - {"id":"a","action":"deny"}' },
    { name: "rules of the file guard in another order", before: "[sandbox]\nrules = [{ id = 'a', action = 'deny' }, { id = 'b', action = 'allow' }]", after: "[sandbox]\nrules = [{ id = 'b', action = 'allow' }, { id = 'a', action = 'deny' }]", said: "[sandbox] rules: another order" },
    { name: "a folder of the file guard that may be written", before: "[[sandbox.grants]]\nroot = 'a'\naccess = 'r'", after: "[[sandbox.grants]]\nroot = 'a'\naccess = 'rw'", said: ['[sandbox] grants: + {"root":"a","access":"rw"}', '[sandbox] grants: - {"root":"a","access":"r"}'] },
    { name: "longer time for an answer", before: "", after: "[sandbox]\ntimeout = 900", said: "[sandbox] timeout: (not set) → 900" },
    { name: "another size from which files are large", before: "[sandbox]\nlarge = '1m'", after: "[sandbox]\nlarge = '1g'", said: "[sandbox] large: 1m → 1g" },
    { name: "a quota less", before: "[sandbox]\nquota_files = 5", after: "", said: "[sandbox] quota_files: 5 → (not set)" },
    { name: "a proxy, without its password", before: "", after: "[build]\nproxy = 'http://u:s3cret@proxy.example.com:3128'", said: "[build] proxy: new" },
  ])("$name", ({ before, after, user, said }) => {
    expect(widenings(before, after, user)).toEqual([said].flat());
  });
});

test("hosts may move between the list and its file, and new lines of the file are told", () => {
  const before = [{ name: FILE, text: nets("allow_hosts = ['a.example.com']\nallow_file = 'hosts.txt'") }, { name: HOSTS, text: "b.example.com\n" }];
  const moved = [{ name: FILE, text: nets("allow_file = 'hosts.txt'") }, { name: HOSTS, text: "a.example.com\nb.example.com\n" }];
  expect(compareTrust(before, moved, {}).widenings).toEqual([]);
  const more = [before[0] ?? { name: FILE, text: "" }, { name: HOSTS, text: "b.example.com\nc.example.com # new\n" }];
  expect(compareTrust(before, more, {}).widenings).toEqual([`allow_file ${HOSTS}: + c.example.com`]);
});

test("another content of any other file that is named counts", () => {
  const main = { name: FILE, text: "[build]\nca_file = 'ca.pem'" };
  const [old, changed] = [{ name: "ca.pem", text: "a" }, { name: "ca.pem", text: "b" }] as const;
  expect(compareTrust([main, old], [main, old], {}).widenings).toEqual([]);
  expect(compareTrust([main, old], [main, changed], {}).widenings).toEqual(["ca.pem: changed"]);
});

test("a file that shares its last name with the list of hosts is no part of it", () => {
  const both = [{ name: FILE, text: "[network]\nallow_file = 'x'\n[build]\nca_file = 'ca/x'" }, { name: ".agentbox/x", text: "" }];
  const [old, changed] = [{ name: ".agentbox/ca/x", text: "a" }, { name: ".agentbox/ca/x", text: "b" }] as const;
  expect(compareTrust([...both, old], [...both, changed], {}).widenings).toEqual([".agentbox/ca/x: changed"]);
});

test("after an older version's file, which is not understood, everything is asked about", () => {
  expect(widenings("[from_an_older_version]", nets("allow_hosts = ['a.example.com']"))).toEqual(["mode: none → allowlist (the [network] table)", "allow_hosts: + a.example.com"]);
});

describe("the difference", () => {
  test("shows changed lines with three around them", () => {
    const lines = Array.from({ length: 12 }, (_, index) => `# ${index}`);
    expect(difference(lines.join("\n"), lines.with(6, "# new").join("\n"))).toBe(`--- ${FILE}\n+++ ${FILE}\n # 3\n # 4\n # 5\n-# 6\n+# new\n # 7\n # 8\n # 9\n…\n`);
  });

  test("shows a new file whole, an equal one not at all", () => {
    expect(difference(undefined, nets("mode = 'none'"))).toBe(`--- (none)\n+++ ${FILE}\n+[network]\n+mode = 'none'\n`);
    expect(difference("# a\n", "# a\n")).toBe("");
  });

  test("shows what a terminal would hide", () => {
    expect(difference("", "# \u202egnp.exe\n")).toBe(`--- ${FILE}\n+++ ${FILE}\n+# \\u202egnp.exe\n`);
  });
});
