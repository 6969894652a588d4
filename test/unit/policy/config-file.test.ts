import { readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderJsonSchema } from "../../../policy/config-json-schema.ts";
import { addExcerpts, parseConfig } from "../../../policy/config-file.ts";
import { renderConfigTemplate } from "../../../policy/config-template.ts";
import { ConfigError, renderComplaint } from "../../../policy/errors.ts";

const FILE = ".agentbox/config.toml";
const judges = { presets: ["npm", "rust"], isPublicSuffix: (name: string) => name === "co.uk" };

function mistakes(text: string): string[] {
  try {
    parseConfig({ file: FILE, text, ...judges });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.complaints.map(renderComplaint);
    throw error;
  }
}

test("the full example is read with every key, and each value has its place", () => {
  const { config, placeOf } = parseConfig({ file: FILE, text: readFileSync(path.join(import.meta.dirname, "../../fixtures/config/full.toml"), "utf8"), ...judges });
  expect(config.network?.allow_hosts).toEqual(["registry.example.com", "*.example.com:8443", { host: "sso.example.com", ports: [443, 8443] }, { host: "db", ports: [5432], private: true }]);
  expect(config.network?.rules).toEqual([{ domain: "*.example.org", action: "deny" }, { domain: "*", action: "allow", ports: [443] }]);
  expect(Object.keys(config)).toEqual(["network", "box", "workspace", "build"]);
  expect(placeOf(["network", "allow_hosts", 1])).toEqual({ file: FILE, line: 6, column: 3 });
  expect(placeOf(["network", "rules", 1, "ports", 0])).toEqual({ file: FILE, line: 35, column: 10 });
  expect(placeOf(["network", "policy", "mode"])).toEqual({ file: FILE, line: 14, column: 15 });
  expect(placeOf(["network", "not", "there"])).toEqual({ file: FILE, line: 3, column: 2 });
});

test.each([
  { name: "an empty file", text: "" },
  { name: "comments alone", text: "# nothing\n" },
  { name: "Windows line ends", text: "[network]\r\nallow_hosts = [\r\n 'a.example.com',\r\n]\r\n" },
  { name: "a byte order mark", text: "\ufeff[network]\nmode = 'none'\n" },
  { name: "tabs", text: "[network]\n\tmode\t=\t'none'\t# x\n" },
  { name: "a rule that denies a whole top-level domain", text: "[[network.rules]]\ndomain = '*.com'\naction = 'deny'\n" },
  { name: "an empty variable", text: "[box]\nenv = { EMPTY = '' }\n" },
])("takes $name", ({ text }) => {
  expect(mistakes(text)).toEqual([]);
});

const refused: readonly { name: string; text: string; said: RegExp }[] = [
  { name: "an unknown key, with the nearest known one", text: "[network]\nallow_host = []", said: /:2:1: \[network\] has no key "allow_host"; .*did you mean allow_hosts\?/ },
  { name: "an unknown table", text: "[netwrok]", said: /:1:2: the file has no key "netwrok"; .*did you mean network\?/ },
  { name: "a listener without a port", text: "[network_proxy]\nproxy_url = 'http://127.0.0.1'", said: /:2:13: "http:\/\/127\.0\.0\.1" is not the address of a listener; expected http:\/\/127\.0\.0\.1:PORT/ },
  { name: "an upstream proxy, without its password", text: "[network_proxy]\nupstream_proxy = 'http://me:hunter2@proxy.corp'", said: /:2:18: this is not the address of a proxy(?!.*hunter2)/s },
  { name: "a socket by a relative path", text: "[network_proxy.policy]\nallow_unix_sockets = ['run/x.sock']", said: /"run\/x\.sock" is not a socket; expected an absolute path, \$SSH_AUTH_SOCK or ssh-agent/ },
  { name: "a key that JavaScript gives a meaning", text: "__proto__ = 1", said: /no key "__proto__"/ },
  { name: "a wrong type, with expected and got", text: "[network]\nreport = 'yes'", said: /:2:10: network\.report is a string; expected true or false/ },
  { name: "a string where an array is expected, with the corrected form", text: "[network]\nblock_hosts = 'x.example.com'", said: /fix: write \["x\.example\.com"\]/ },
  { name: "a word that is none of the known", text: "[network]\nmode = 'alowlist'", said: /:2:8: network\.mode is "alowlist"; expected "none" or "allowlist" or "full"; fix: did you mean allowlist\?/ },
  { name: "a missing key of a rule", text: "[[network.rules]]\naction = 'deny'", said: /:1:11: network\.rules\[1\] has no domain/ },
  { name: "a malformed host, at the very element", text: "[network]\nallow_hosts = ['a.example.com', 'https://b.example.com']", said: /:2:33: "https:\/\/b\.example\.com" has the scheme.*write b\.example\.com/ },
  { name: "a wildcard over a public suffix", text: "[network]\nallow_hosts = ['*.co.uk']", said: /"\*\.co\.uk" opens every domain/ },
  { name: "every host", text: "[network]\nallow_hosts = ['*']", said: /opens every host.*--full-network/ },
  { name: "a dotless name that is not private", text: "[network]\nallow_hosts = [{ host = 'db', ports = [5432] }]", said: /:2:25: "db" has no dot/ },
  { name: "a private host without ports", text: "[network]\nallow_hosts = [{ host = 'db', private = true }]", said: /:2:41: "db" has private = true and no ports/ },
  { name: "a private wildcard", text: "[network]\nallow_hosts = [{ host = '*.internal.example', ports = [1], private = true }]", said: /private and has a wildcard/ },
  { name: "ports at the host and beside it", text: "[network]\nallow_hosts = [{ host = 'a.example.com:80', ports = [443] }]", said: /"a\.example\.com:80" names ports.*ports = \[443\]/ },
  { name: "a port out of range", text: "[network]\nallow_hosts = [{ host = 'a.example.com', ports = [70000] }]", said: /:2:51: network\.allow_hosts\[1\]\.ports\[1\] is the number 70000; expected whole numbers from 1 to 65535/ },
  { name: "a protocol without ports", text: "[network]\nallow_hosts = [{ host = 'a.example.com', protocol = 'tcp' }]", said: /protocol = "tcp" and no ports/ },
  { name: "a block with ports", text: "[network]\nblock_hosts = ['a.example.com:443']", said: /names ports; .*write a\.example\.com/ },
  { name: "an unknown preset", text: "[network]\npresets = ['rsut']", said: /no preset "rsut".*did you mean rust\?/ },
  { name: "deny-list without the name wall", text: "[network]\nenforcement = 'address'\n[network.policy]\nmode = 'deny-list'", said: /:4:8: "deny-list" needs the name wall; expected enforcement = "name"/ },
  { name: "a public block in allow_private", text: "[network]\nallow_private = ['8.8.8.0/24']", said: /"8\.8\.8\.0\/24" is not a private block/ },
  { name: "everything in allow_private", text: "[network]\nallow_private = ['0.0.0.0/0']", said: /"0\.0\.0\.0\/0"/ },
  { name: "a resolver by name", text: "[network]\ndns = ['dns.example.com']", said: /is not an address/ },
  { name: "a critical wildcard", text: "[network]\ncritical = ['*.example.com']", said: /not a plain name/ },
  { name: "an unknown agent", text: "[box]\nagent = 'claud'", said: /did you mean claude\?/ },
  { name: "a malformed port", text: "[box]\nports = ['80:x']", said: /"80:x": "x" is not a port|"x" is not a port/ },
  { name: "a malformed size", text: "[box]\nmemory = '2 gigs'", said: /box\.memory is "2 gigs"; expected a size such as 2g or 512m/ },
  { name: "no processors", text: "[box]\ncpus = 0", said: /box\.cpus is the number 0; expected a number above 0 and at most 4096, such as 1\.5/ },
  { name: "infinite processors", text: "[box]\ncpus = inf", said: /box\.cpus/ },
  { name: "a variable that steers the program", text: "[box]\nenv = { AGENTBOX_FIREWALL = '0' }", said: /"AGENTBOX_FIREWALL" is for the command line/ },
  { name: "a path out of the project", text: "[workspace]\nwritable = ['a/../../b']", said: /not a path below the project/ },
  { name: "the project itself", text: "[workspace]\nwritable = ['./']", said: /not a path below the project/ },
  { name: "the configuration itself as writable", text: "[workspace]\nwritable = ['.vscode', '.agentbox']", said: /:2:24: "\.agentbox" would have the agent write the rules that hold for it[^]*\^{11}/ },
  { name: "a file of the configuration, spelt otherwise, as writable", text: "[workspace]\nwritable = ['.//.AgentBox/config.toml']", said: /:2:13: .* would have the agent write the rules/ },
  { name: "the configuration of a project inside as writable", text: "[workspace]\nwritable = ['sub/.agentbox/']", said: /would have the agent write the rules/ },
  { name: "an absolute path", text: "[workspace]\nwritable = ['/etc']", said: /not a path below the project/ },
  { name: "a NUL character in a path", text: '[build]\nca_file = "a\\u0000b"', said: /NUL character/ },
  { name: "a raw NUL character", text: "a\0=1", said: /:1:2: the character "\\u0000"/ },
  { name: "an escape sequence of a terminal", text: "# \u{1b}[2J", said: /:1:3: the character "\\u001b"/ },
  { name: "bytes that are no UTF-8", text: "# \ufffd", said: /expected UTF-8 text/ },
  { name: "a key written twice", text: "[network]\nmode = 'none'\nmode = 'full'", said: /:3:1: "mode" is written twice/ },
  { name: "a text without quotes", text: "[network]\nmode = none", said: /:2:8: a text without quotes/ },
  { name: "an array without its end before a table", text: "[network]\nallow_hosts = [\n  'a.example.com', # [x\n\n[box]\nagent = 'codex'\n", said: /the array that opens on line 2 is not closed; expected a \] at its end/ },
  { name: "an array without its end before a key", text: "[network]\nallow_hosts = ['a.example.com'\nmode = 'none'\n", said: /the array that opens on line 2 is not closed/ },
  { name: "an array without its end", text: "[network]\nallow_hosts = [\n  'a.example.com',\n", said: /the array that opens on line 2 is not closed/ },
  { name: "a text without quotes in an array", text: "[network]\nallow_hosts = [\n  a.example.com,\n]\n", said: /:3:3: a text without quotes/ },
  { name: "an inline table over lines, which a later TOML knows", text: "[network]\npolicy = {\n mode = 'allow-list' }", said: /:2:.*an inline table \{ … \} has a comma at its end or spans lines/ },
  { name: "an inline table with a comma at its end, which a later TOML knows", text: "[network]\npolicy = { mode = 'allow-list', }", said: /:2:.*an inline table \{ … \} has a comma at its end or spans lines/ },
  { name: "no value", text: "[network]\nmode =", said: /:2:7: there is no value after =/ },
  { name: "an open string", text: "[network]\nmode = 'none", said: /a string is not closed/ },
  { name: "arrays in arrays without end", text: `a = ${"[".repeat(60)}${"]".repeat(60)}`, said: /nested/ },
  { name: "a file larger than 1 MiB", text: "#".repeat(1_048_577), said: /larger than 1 MiB/ },
];

test.each(refused)("refuses $name", ({ text, said }) => {
  expect(mistakes(text).join("\n")).toMatch(said);
});

test("tells all mistakes at once, in the order of the file", () => {
  const text = "[network]\nmode = 'x'\nallow_hosts = ['ok.example.com', 'https://a.example.com', 5]\nssh = true\n[box]\nagnet = 'codex'\n";
  expect(mistakes(text).map((line) => line.split(": ")[0])).toEqual([`${FILE}:2:8`, `${FILE}:3:34`, `${FILE}:3:59`, `${FILE}:4:7`, `${FILE}:6:1`]);
});

test("shows the first twenty of many and counts the rest", () => {
  const found = mistakes(Array.from({ length: 50_000 }, (_, index) => `k${index} = 1`).join("\n"));
  expect(found).toHaveLength(21);
  expect(found[20]).toBe(`${FILE}: 49980 further mistakes`);
});

describe("the caret", () => {
  test("stands under the word, behind tabs and wide characters", () => {
    const [line = "", excerpt = "", caret = ""] = mistakes("[network]\n\tallow_hosts = [ 'b*', 'é漢.example.com' , '*b' ]")[1]?.split("\n") ?? [];
    expect(line).toContain("*b");
    expect(excerpt).toBe("  2 |  allow_hosts = [ 'b*', 'é漢.example.com' , '*b' ]");
    expect(caret).toBe(`    | ${" ".repeat(43)}^^^^`);
  });

  test("is seen in long lines as well", () => {
    const [, excerpt = "", caret = ""] = mistakes(`[network]\nallow_hosts = [${"'a.example.com', ".repeat(50)}'*b']`)[0]?.split("\n") ?? [];
    expect(excerpt.length).toBeLessThan(120);
    expect(excerpt.slice(caret.indexOf("^"), caret.lastIndexOf("^") + 1)).toBe("'*b'");
  });

  test("is added to complaints of others by their places", () => {
    const text = "[network]\nallow_hosts = ['*.co.uk']\n";
    const [complaint] = addExcerpts([{ what: "x", place: { file: FILE, line: 2, column: 16 } }, { what: "y", place: { file: "other", line: 1, column: 1 } }], { file: FILE, text });
    expect(complaint?.excerpt).toBe("  2 | allow_hosts = ['*.co.uk']\n    |                ^^^^^^^^^");
  });
});

describe("no secret is repeated", () => {
  test.each([
    ["a variable of the wrong type", "[box]\nenv = { TOKEN = 's3cret', N = 5 }"],
    ["variables in a table of their own", "[box.env]\nTOKEN = 's3cret\nX = 1"],
    ["a variable whose name is wrong", "[box.env]\n'a-b' = 's3cret'"],
    ["variables as a string", "[box]\nenv = 's3cret'"],
    ["an unfinished array of variables", "box.env.TOKEN = ['s3cret'"],
    ["variables under a key that is written otherwise", '[box]\n"e\\u006ev" = { "a-b" = "s3cret" }'],
    ["a proxy with a password", "[build]\nproxy = 'ftp://user:s3cret@proxy.example.com'"],
    ["a proxy in a list", "[build]\nproxy = ['http://user:s3cret@proxy.example.com']"],
  ])("from %s", (_row, text) => {
    expect(mistakes(text)).not.toEqual([]);
    expect(mistakes(text).join("\n")).not.toContain("s3cret");
  });
});

test("no text makes the parser throw anything but a ConfigError", () => {
  const piece = fc.constantFrom("[network]", "[[network.rules]]", "\n", "allow_hosts", " = ", "['a.example.com']", "{ host = 'x' }", "[", "]", "'", '"', "env", ".", "#", "\r\n", "\t", "mode", "'none'", "1", "inf", "2026-01-01", "\ufeff", "\0");
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.array(piece).map((pieces) => pieces.join(""))), (text) => {
      expect(mistakes(text).length).toBeLessThan(22);
    }),
    { numRuns: 500 },
  );
});

test("the schema for editors is the one of the parser", () => {
  expect(readFileSync(path.join(import.meta.dirname, "../../../agentbox.schema.json"), "utf8"), "run node scripts/write-schema.ts").toBe(renderJsonSchema());
});

describe("the template", () => {
  test.each([
    { name: "without a choice", choices: {}, config: { network: {}, box: {} } },
    {
      name: "with all choices",
      choices: { agent: "codex", presets: ["rust"], allowHosts: ["a.example.com", "*.example.org:8443"], topology: "sidecar", schema: "https://example.com/agentbox.schema.json\nx" } as const,
      config: { network: { presets: ["rust"], allow_hosts: ["a.example.com", "*.example.org:8443"], topology: "sidecar" }, box: { agent: "codex" } },
    },
  ])("is read back $name", ({ choices, config }) => {
    expect(parseConfig({ file: FILE, text: renderConfigTemplate(choices), ...judges }).config).toEqual(config);
  });

  test("is correct where its comments are taken as keys", () => {
    const text = renderConfigTemplate({}).replaceAll(/^# (?=[a-z_]+ = )/gm, "");
    expect(mistakes(text)).toEqual([]);
  });
});
