import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { buildBoxPolicy, type BoxPolicy } from "../../../policy/box-policy.ts";
import { parseAllowFile } from "../../../policy/config-allow-file.ts";
import { buildDocument, decideMode, type DocumentInput } from "../../../policy/config-document.ts";
import { parseConfig, type ParsedConfig } from "../../../policy/config-file.ts";
import { decide } from "../../../policy/decide.ts";
import { policyDocumentSchema, type PolicyDocument } from "../../../policy/policy-document.ts";
import { parsePreset } from "../../../policy/preset.ts";

const root = path.join(import.meta.dirname, "../../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
const lists = { services: read("allowlists/services.sh"), github: read("allowlists/github.sh") };
const presets = ["rust", "lockdown", "unrestricted"].map((id) => parsePreset(id, `allowlists/presets/${id}.sh`, read(`allowlists/presets/${id}.sh`)));
const agent = { name: "claude", hosts: [], critical: null };

const project = (text: string): ParsedConfig => parseConfig({ file: ".agentbox/config.toml", text });
const own = (text: string): ParsedConfig => parseConfig({ file: "~/.agentbox/config.toml", text });

function documentOf(input: Partial<DocumentInput>): PolicyDocument {
  return policyDocumentSchema.parse(buildDocument({ project: undefined, user: undefined, presets, allowFile: undefined, agent, ...input }));
}

function policyOf(input: Partial<DocumentInput>): BoxPolicy {
  return buildBoxPolicy({ document: documentOf(input), lists, isPublicSuffix: () => false, now: 1000 });
}

const allows = ({ policy }: BoxPolicy, host: string, port: number): boolean => decide(policy, { host, port }).action === "allow";

describe("decideMode", () => {
  test.each([
    { name: "nothing at all leaves the network open", text: "", mode: "full", why: "there is no [network] table" },
    { name: "the table alone turns the firewall on", text: "[network]", mode: "allowlist", why: "the [network] table" },
    { name: "none is none", text: "[network]\nmode='none'", mode: "none", why: 'mode = "none"' },
    { name: "full is full", text: "[network]\nmode='full'", mode: "full", why: 'mode = "full"' },
    { name: "the preset lockdown is none", text: "[network]\npresets=['rust','lockdown']", mode: "none", why: "the preset lockdown" },
    { name: "the preset unrestricted is full", text: "[network]\npresets=['unrestricted']", mode: "full", why: "the preset unrestricted" },
    { name: "lockdown wins over unrestricted", text: "[network]\npresets=['unrestricted','lockdown']", mode: "none", why: "the preset lockdown" },
    { name: "lockdown wins over full", text: "[network]\nmode='full'\npresets=['lockdown']", mode: "none", why: "the preset lockdown" },
    { name: "the base unrestricted is full", text: "[network.policy]\nmode='unrestricted'", mode: "full", why: 'policy.mode = "unrestricted"' },
    { name: "a written allowlist wins over it", text: "[network]\nmode='allowlist'\npolicy.mode='unrestricted'", mode: "allowlist", why: 'mode = "allowlist", which counts before policy.mode = "unrestricted"' },
    { name: "the one rule that allows everything is full", text: "[[network.rules]]\ndomain=' * '\naction='allow'", mode: "full", why: "the only rule, which allows *" },
    { name: "on some ports it is a rule", text: "[[network.rules]]\ndomain='*'\naction='allow'\nports=[443]", mode: "allowlist", why: "the [network] table" },
    { name: "beside another it is a rule", text: "[network]\nrules=[{domain='a.example.com',action='deny'},{domain='*',action='allow'}]", mode: "allowlist", why: "the [network] table" },
  ])("$name", ({ text, mode, why }) => {
    expect(decideMode(project(text).config)).toEqual({ mode, why });
  });
});

describe("buildDocument", () => {
  test("names every source and place", () => {
    const text = "[network]\nallow_hosts = ['a.example.com', { host = 'ssh.example.com', ports = [443], protocol = 'tcp' }]\nallow_file = 'hosts.txt'\npresets = ['rust']\n";
    const { sources } = documentOf({ project: project(text), allowFile: { name: ".agentbox/hosts.txt", text: "b.example.com # ours\n" }, session: { allow: [{ text: "c.example.com", until: 2000 }], deny: [] } });
    expect(sources.map(({ label, surface, words }) => [label, surface, words[0]])).toEqual([
      [".agentbox/config.toml", "list", { text: "a.example.com", place: { file: ".agentbox/config.toml", line: 2, column: 16 } }],
      ["allow_file .agentbox/hosts.txt", "list", { text: "b.example.com", place: { file: ".agentbox/hosts.txt", line: 1, column: 1 } }],
      ["preset rust", "allowlist-file", expect.objectContaining({ place: expect.objectContaining({ file: "allowlists/presets/rust.sh" }) })],
      ["policy allow", "list", { text: "c.example.com", until: 2000 }],
    ]);
    expect(sources[0]?.words[1]?.text).toBe("tcp://ssh.example.com:443");
  });

  test("takes the project's file, and of the user's own the blocks alone", () => {
    const policy = policyOf({ project: project("[network]\nallow_hosts=['*.example.com']"), user: own("[network]\nallow_hosts=['own.example.org']\nblock_hosts=['bad.example.com']\nssh='any'") });
    expect(["good.example.com", "bad.example.com", "own.example.org"].map((host) => allows(policy, host, 443))).toEqual([true, false, false]);
    expect(policy.ssh).toBe("listed");
  });

  test("takes the user's own file where the project has none", () => {
    const policy = policyOf({ user: own("[network]\nallow_hosts=['own.example.org']\nssh='off'") });
    expect([allows(policy, "own.example.org", 443), policy.ssh]).toEqual([true, "off"]);
  });

  test("a session's deny wins over the file, and its allow over nothing that is blocked", () => {
    const policy = policyOf({ project: project("[network]\nallow_hosts=['a.example.com']\nblock_hosts=['b.example.com']"), session: { allow: [{ text: "b.example.com" }, { text: "c.example.com" }, { text: "late.example.com", until: 1 }], deny: [{ text: "a.example.com" }] } });
    expect(["a.example.com", "b.example.com", "c.example.com", "late.example.com"].map((host) => allows(policy, host, 443))).toEqual([false, false, true, false]);
  });

  test("private hosts are kept apart", () => {
    const { sources, private: hosts } = documentOf({ project: project("[network]\nallow_hosts=[{host='db',ports=[5432],private=true}]") });
    expect([sources, hosts]).toEqual([[], [{ host: "db", ports: [5432], place: { file: ".agentbox/config.toml", line: 2, column: 14 } }]]);
  });

  test.each(["mode='none'", "presets=['rust','lockdown']"])("%s allows nothing, whatever else is written", (line) => {
    const text = `[network]\n${line}\nallow_hosts=['a.example.com','192.0.2.1']\nrules=[{domain='b.example.com',action='allow'}]\ncritical=['a.example.com']\nreport=true\nssh='any'\n`;
    const policy = policyOf({ project: project(text), session: { allow: [{ text: "c.example.com" }], deny: [] } });
    expect(["a.example.com", "b.example.com", "c.example.com", "api.anthropic.com", "192.0.2.1"].map((host) => allows(policy, host, 443))).toEqual([false, false, false, false, false]);
    expect(policy).toMatchObject({ opensNothing: true, report: false, ssh: "off" });
    const open = policyOf({ project: project(text.replace(line, "")) });
    expect(["a.example.com", "b.example.com", "api.anthropic.com"].map((host) => allows(open, host, 443))).toEqual([true, true, true]);
  });

  test("the one rule that allows everything opens nothing where the firewall stays on", () => {
    const policy = policyOf({ project: project("[[network.rules]]\ndomain='*'\naction='allow'") });
    expect(allows(policy, "anything.example.com", 443)).toBe(false);
    expect(allows(policyOf({ project: project("[network]\nrules=[{domain='*',action='allow',ports=[443]}]") }), "anything.example.com", 443)).toBe(true);
  });

  test("an allow_file that was not read is refused, and a preset that does not exist", () => {
    expect(() => documentOf({ project: project("[network]\nallow_file='x.txt'") })).toThrow(/config\.toml:2:12: allow_file "x\.txt" was not read/);
    expect(() => documentOf({ project: project("[network]\npresets=['nope']") })).toThrow(/config\.toml:2:10: there is no preset "nope"/);
  });
});

describe("parseAllowFile", () => {
  test("takes one entry a line, with comments, blanks and the line ends of other systems", () => {
    const text = "\ufeff# ours\r\n\r\n  *.a.example.com:8443  # wildcard\r\n\tb.example.com\t#x\n192.0.2.0/24:22";
    expect(parseAllowFile({ file: "hosts.txt", text })).toEqual([
      { text: "*.a.example.com:8443", place: { file: "hosts.txt", line: 3, column: 3 } },
      { text: "b.example.com", place: { file: "hosts.txt", line: 4, column: 2 } },
      { text: "192.0.2.0/24:22", place: { file: "hosts.txt", line: 5, column: 1 } },
    ]);
  });

  test("refuses every malformed line at once, with a caret", () => {
    expect(() => parseAllowFile({ file: "hosts.txt", text: "https://a.example.com\nok.example.com\n* # all\n" })).toThrow(
      /hosts\.txt:1:1: "https:.*\n {2}1 \| https:\/\/a\.example\.com\n {4}\| \^+\nhosts\.txt:3:1: "\*" opens every host/,
    );
  });
});
