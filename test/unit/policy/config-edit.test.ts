import fc from "fast-check";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { addAllowedDomain, addAllowHost, addBlockHost, addPreset, removeAllowHost, removeBlockHost, setKey } from "../../../policy/config-edit.ts";
import { ConfigError } from "../../../policy/errors.ts";

const hostsSchema = z.object({ network: z.object({ allow_hosts: z.array(z.unknown()) }) });

const added: readonly { name: string; before: string; after: string }[] = [
  { name: "an empty file gets the table", before: "", after: '[network]\nallow_hosts = ["new.example.com"]\n' },
  { name: "a file without the table gets it at its end", before: '[box]\nagent = "codex"\n', after: '[box]\nagent = "codex"\n\n[network]\nallow_hosts = ["new.example.com"]\n' },
  { name: "a file without a final line end", before: "[box]\ncpus = 1", after: '[box]\ncpus = 1\n\n[network]\nallow_hosts = ["new.example.com"]\n' },
  { name: "an empty table", before: "[network] # mine\n\n[box]\n", after: '[network] # mine\nallow_hosts = ["new.example.com"]\n\n[box]\n' },
  { name: "a table with other keys, as the last of them, with its indentation", before: '[network]\n\tmode = "none" # now\n[box]\n', after: '[network]\n\tmode = "none" # now\n\tallow_hosts = ["new.example.com"]\n[box]\n' },
  { name: "keys with dots", before: 'network.mode = "none"\nbox.cpus = 1\n', after: 'network.mode = "none"\nnetwork.allow_hosts = ["new.example.com"]\nbox.cpus = 1\n' },
  { name: "an inline table", before: 'network = { mode = "none" }\n', after: 'network = { mode = "none", allow_hosts = ["new.example.com"] }\n' },
  { name: "an empty inline table", before: "network = {}\n", after: 'network = { allow_hosts = ["new.example.com"] }\n' },
  { name: "an empty array", before: "[network]\nallow_hosts = []\n", after: '[network]\nallow_hosts = ["new.example.com"]\n' },
  { name: "an empty array with a comment inside", before: "[network]\nallow_hosts = [\n  # none yet\n]\n", after: '[network]\nallow_hosts = [\n  # none yet\n  "new.example.com",\n]\n' },
  { name: "an array on one line", before: '[network]\nallow_hosts = ["a.example.com"] # ours\n', after: '[network]\nallow_hosts = ["a.example.com", "new.example.com"] # ours\n' },
  { name: "an array on one line with a comma at its end", before: '[network]\nallow_hosts = ["a.example.com", ]\n', after: '[network]\nallow_hosts = ["a.example.com", "new.example.com", ]\n' },
  { name: "single quotes", before: "[network]\nallow_hosts = ['a.example.com']\n", after: "[network]\nallow_hosts = ['a.example.com', 'new.example.com']\n" },
  {
    name: "an array on several lines",
    before: '[network]\nallow_hosts = [\n    "a.example.com", # a, with ] and "\n    # end\n]\n',
    after: '[network]\nallow_hosts = [\n    "a.example.com", # a, with ] and "\n    "new.example.com",\n    # end\n]\n',
  },
  { name: "an array on several lines without a comma at its end", before: '[network]\nallow_hosts = [\n  "a.example.com" # a\n]\n', after: '[network]\nallow_hosts = [\n  "a.example.com", # a\n  "new.example.com"\n]\n' },
  { name: "an array whose bracket stands behind the last element", before: '[network]\nallow_hosts = [\n  "a.example.com"]\n', after: '[network]\nallow_hosts = [\n  "a.example.com",\n  "new.example.com"]\n' },
  { name: "a comma on a line of its own", before: '[network]\nallow_hosts = [\n  "a.example.com"\n  , # odd\n]\n', after: '[network]\nallow_hosts = [\n  "a.example.com"\n  , # odd\n  "new.example.com",\n]\n' },
  { name: "tables among the elements", before: '[network]\nallow_hosts = [{ host = "db", ports = [1], private = true }]\n', after: '[network]\nallow_hosts = [{ host = "db", ports = [1], private = true }, "new.example.com"]\n' },
  { name: "Windows line ends", before: "[network]\r\nallow_hosts = [\r\n  'a.example.com',\r\n]\r\n", after: "[network]\r\nallow_hosts = [\r\n  'a.example.com',\r\n  'new.example.com',\r\n]\r\n" },
  { name: "a byte order mark", before: '\ufeff[network]\nallow_hosts = ["a.example.com"]\n', after: '\ufeff[network]\nallow_hosts = ["a.example.com", "new.example.com"]\n' },
  { name: "a table of the table alone", before: '[network.policy]\nmode = "allow-list"\n', after: '[network.policy]\nmode = "allow-list"\n\n[network]\nallow_hosts = ["new.example.com"]\n' },
];

const removed: readonly { name: string; before: string; after: string }[] = [
  { name: "the only element", before: "allow_hosts = ['old.example.com']", after: "allow_hosts = []" },
  { name: "the first of a line", before: "allow_hosts = ['old.example.com', 'a.example.com']", after: "allow_hosts = ['a.example.com']" },
  { name: "the last of a line", before: "allow_hosts = ['a.example.com', 'old.example.com']", after: "allow_hosts = ['a.example.com']" },
  { name: "a line of its own", before: "allow_hosts = [\n  'a.example.com',\n  'old.example.com',\n  'b.example.com'\n]", after: "allow_hosts = [\n  'a.example.com',\n  'b.example.com'\n]" },
  { name: "the last line, without a comma", before: "allow_hosts = [\n  'a.example.com',\n  'old.example.com'\n]", after: "allow_hosts = [\n  'a.example.com',\n]" },
  { name: "a line whose comment stays", before: "allow_hosts = [\n  'old.example.com', # why\n]", after: "allow_hosts = [\n  # why\n]" },
  { name: "a comment before the comma", before: "allow_hosts = [\n  'old.example.com' # why\n  ,\n  'a.example.com' ]", after: "allow_hosts = [\n   # why\n  \n  'a.example.com' ]" },
  { name: "every form of the entry", before: "allow_hosts = ['OLD.example.com', { host = 'old.example.com', ports = [443] }, 'old.example.com:443']", after: "allow_hosts = []" },
  { name: "nothing where the ports are others", before: "allow_hosts = ['old.example.com:8443']", after: "allow_hosts = ['old.example.com:8443']" },
];

describe("addAllowHost", () => {
  test.each(added)("writes into $name", ({ before, after }) => {
    expect(addAllowHost(before, "new.example.com")).toBe(after);
    expect(addAllowHost(after, "new.example.com")).toBe(after);
  });

  test.each(["a.example.com", "A.EXAMPLE.COM.", "a.example.com:443", " a.example.com "])("changes nothing for %j, which is there", (entry) => {
    const text = "[network]\nallow_hosts=['a.example.com']";
    expect(addAllowHost(text, entry)).toBe(text);
  });

  test("refuses what is no entry", () => {
    expect(() => addAllowHost("", "https://example.com")).toThrow(/has the scheme https/);
  });

  test("refuses what it cannot edit, and shows the line", () => {
    const odd = { name: "an array of tables", text: "[[network]]\nmode = 'none'\n" };
    expect(() => addAllowHost(odd.text, "new.example.com")).toThrow(/edit it by hand: \[network\] allow_hosts = \["new.example.com"\]/);
    expect(() => addAllowHost("[network]\nallow_hosts = 'x'\n", "new.example.com")).toThrow(/\.agentbox\/config\.toml:2:1: .*not safe to edit/);
  });
});

describe("removeAllowHost", () => {
  test.each(removed)("removes $name", ({ before, after }) => {
    expect(removeAllowHost(`[network]\n${before}\n`, "old.example.com")).toBe(`[network]\n${after}\n`);
  });
});

test("block_hosts and presets are edited alike", () => {
  const text = addPreset(addBlockHost("", "*.example.com"), "rust");
  expect(parse(text)).toEqual({ network: { block_hosts: ["*.example.com"], presets: ["rust"] } });
  expect(removeBlockHost(text, "**.example.com")).toBe('[network]\nblock_hosts = []\npresets = ["rust"]\n');
});

test("a key is set in place, and one that holds the value is left alone", () => {
  const text = "[network]\nmode = 'none' # for now\n";
  expect(setKey(text, { table: "network", key: "mode", value: "allowlist" })).toBe('[network]\nmode = "allowlist" # for now\n');
  expect(setKey(text, { table: "network", key: "mode", value: "none" })).toBe(text);
  expect(setKey(text, { table: "box", key: "cpus", value: 2 })).toBe(`${text}\n[box]\ncpus = 2\n`);
  expect(() => setKey("[network]\npresets = [ # why\n]\n", { table: "network", key: "presets", value: ["rust"] })).toThrow(ConfigError);
});

test("an edit that would mean something else is not made", () => {
  expect(() => setKey("[network]\n", { table: "network", key: "policy.mode", value: "allow-list" })).toThrow(/not safe to edit.*edit it by hand: \[network\] policy\.mode = "allow-list"/);
});

const host = fc.constantFrom("a.example.com", "b.example.com:8443", "*.c.example.com", "192.0.2.1", "tcp://d.example.com:22");
const comment = fc.stringMatching(/^[ -~]*$/).map((text) => `#${text}`);
const lineEnd = fc.constantFrom("\n", "\r\n");
const gap = fc.constantFrom("", " ", "\t", "   ");
const quoted = fc.tuple(host, fc.boolean()).map(([word, single]) => (single ? `'${word}'` : `"${word}"`));

/** Arrays as people write them: elements, blanks, line ends and comments in any mixture. */
const array = fc
  .tuple(fc.array(fc.tuple(gap, quoted, gap, fc.option(comment), gap)), fc.boolean(), lineEnd, fc.option(comment))
  .map(([members, trailing, eol, last]) => {
    const parts = members.map(([before, word, between, note, after], index) => {
      const comma = index < members.length - 1 || trailing ? "," : "";
      return `${before}${word}${between}${comma}${note === null ? after : ` ${note}${eol}`}`;
    });
    return `[${parts.join("")}${last === null ? "" : ` ${last}${eol}`}]`;
  });

const document = fc.tuple(array, fc.option(comment), fc.constantFrom("[network]", "[ network ]", '["network"]'), lineEnd, fc.boolean()).map(([value, note, header, eol, final]) => {
  const lines = ["# top", header, `allow_hosts = ${value}${note === null ? "" : ` ${note}`}`, "[box] # box", 'agent = "codex"'];
  return `${lines.join(eol)}${final ? eol : ""}`;
});

describe("whatever the array looks like", () => {
  test("an added host is the only change, at one or two places, and adding twice changes nothing", () => {
    fc.assert(
      fc.property(document, (text) => {
        const result = addAllowHost(text, "new.example.com");
        expect(isSubsequence(text, result)).toBe(true);
        expect(result.length - text.length).toBeLessThan(30);
        expect(addAllowHost(result, "new.example.com")).toBe(result);
        expect(elements(result)).toEqual([...elements(text), "new.example.com"]);
      }),
    );
  });

  test("removing what was added gives the same hosts, and no comment is lost", () => {
    fc.assert(
      fc.property(document, host, (text, word) => {
        const result = removeAllowHost(text, word);
        expect(isSubsequence(result, text)).toBe(true);
        expect(countHashes(result)).toBe(countHashes(text));
        expect(elements(result)).toEqual(elements(text).filter((element) => element !== word));
        expect(elements(removeAllowHost(addAllowHost(text, "new.example.com"), "new.example.com"))).toEqual(elements(text));
      }),
    );
  });

  test("no text makes an edit throw anything but a ConfigError", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[[\]{}"'=,.#a \n]*$/)), (text) => {
        expect(isEdited(text)).toBeTypeOf("boolean");
      }),
    );
  });
});

/** Tells whether the text could be edited; what is thrown but for a ConfigError, and a result that is no TOML, fail the test. */
function isEdited(text: string): boolean {
  let result: string;
  try {
    result = addAllowHost(text, "new.example.com");
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
  return elements(result).includes("new.example.com");
}

function countHashes(text: string): number {
  return (text.match(/#/g) ?? []).length;
}

function elements(text: string): readonly unknown[] {
  return hostsSchema.parse(parse(text)).network.allow_hosts;
}

function isSubsequence(inner: string, outer: string): boolean {
  let at = 0;
  for (const char of outer) if (char === inner[at]) at += 1;
  return at === inner.length;
}

describe("allowed_domains of the stand-alone proxy", () => {
  test.each([
    { name: "an empty file", text: "", edited: '[network_proxy.policy]\nallowed_domains = ["a.example"]\n' },
    { name: "a file without the table", text: "[network_proxy]\nenabled = true # on\n", edited: '[network_proxy]\nenabled = true # on\n\n[network_proxy.policy]\nallowed_domains = ["a.example"]\n' },
    { name: "a table without the key", text: "[network_proxy.policy]\nallow_local_binding = true\n[other]\nx = 1\n", edited: '[network_proxy.policy]\nallow_local_binding = true\nallowed_domains = ["a.example"]\n[other]\nx = 1\n' },
    { name: "an array with comments", text: "[network_proxy.policy]\nallowed_domains = [\n  'b.example', # b\n  # last\n]\n", edited: "[network_proxy.policy]\nallowed_domains = [\n  'b.example', # b\n  'a.example',\n  # last\n]\n" },
    { name: "dotted keys", text: "[network_proxy]\npolicy.allowed_domains = []\n", edited: '[network_proxy]\npolicy.allowed_domains = ["a.example"]\n' },
    { name: "inline tables", text: "network_proxy = { policy = { allowed_domains = ['b.example'] } }\n", edited: "network_proxy = { policy = { allowed_domains = ['b.example', 'a.example'] } }\n" },
    { name: "a host that is there in another form", text: "[network_proxy.policy]\nallowed_domains = ['A.example:443']\n", edited: "[network_proxy.policy]\nallowed_domains = ['A.example:443']\n" },
  ])("is added to $name", ({ text, edited }) => {
    expect(addAllowedDomain(text, "a.example")).toBe(edited);
  });

  test("a table that is written in a way of its own is left to be edited by hand, with the line to write", () => {
    expect(() => addAllowedDomain("network_proxy = { enabled = true }\n", "a.example", "x.toml")).toThrow(/x\.toml: the file is written in a way that is not safe to edit.*edit it by hand: \[network_proxy\.policy\] allowed_domains = \["a\.example"\]/);
  });

  test("what is no host is refused, and a key of another table of that name is not touched", () => {
    expect(() => addAllowedDomain("", "https://a.example/x")).toThrow(ConfigError);
    expect(addAllowedDomain("[policy]\nallowed_domains = []\n", "a.example")).toMatch(/^\[policy\]\nallowed_domains = \[\]\n\n\[network_proxy\.policy\]/);
  });
});
