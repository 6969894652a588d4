import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAddress, type Address } from "../../../policy/address.ts";
import { type BoxPolicy, buildBoxPolicy, loadBoxPolicy } from "../../../policy/box-policy.ts";
import { decide } from "../../../policy/decide.ts";
import { renderOrigin } from "../../../policy/effective-list.ts";
import { ConfigError } from "../../../policy/errors.ts";
import { GIT_SSH_HOSTS } from "../../../policy/git-hosts.ts";
import { openPorts, openRanges } from "../../../policy/open-ports.ts";
import { renderRule } from "../../../policy/policy.ts";
import { emptyDocument, type PolicyDocument } from "../../../policy/policy-document.ts";
import { isPublicSuffix } from "../../../policy/public-suffix.ts";

const lists = {
  services: 'ALLOWED_SERVICES=(\n  "api.anthropic.com"\n  "github.com"\n  "pypi.org"\n)\nCRITICAL_SERVICES=("api.anthropic.com" "github.com")',
  github: 'GITHUB_RANGES_DATE="2026-11-21"\nGITHUB_RANGES=(\n  "140.82.112.0/20"\n)',
};
const empty: PolicyDocument = { ...emptyDocument({ name: "claude", hosts: [], critical: "api.anthropic.com" }), enforcement: "address" };
const place = (line: number): { file: string; line: number } => ({ file: "config.toml", line });

function build(document: Partial<PolicyDocument>, now = 0): BoxPolicy {
  return buildBoxPolicy({ document: { ...empty, ...document }, lists, isPublicSuffix, now });
}

function mistakes(document: Partial<PolicyDocument>): readonly string[] {
  try {
    build(document);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

function reason({ policy }: BoxPolicy, host: string, port?: number, to?: string): string {
  return decide(policy, { host, port, address: to === undefined ? undefined : address(to) }).reason;
}

function address(text: string): Address {
  const result = parseAddress(text);
  if (!result.ok) throw new Error(text);
  return result.value;
}

const allow = (domain: string, ports?: number[]): PolicyDocument["rules"][number] => ({ domain, action: "allow", ...(ports === undefined ? {} : { ports }) });
const deny = (domain: string, ports?: number[]): PolicyDocument["rules"][number] => ({ domain, action: "deny", ...(ports === undefined ? {} : { ports }) });
const blocks = (...texts: string[]): PolicyDocument["blocks"] => [{ label: "block_hosts", words: texts.map((text, index) => ({ text, place: place(index + 1) })) }];

describe("the order of the sources", () => {
  test.each<[string, Partial<PolicyDocument>, string, number | undefined, string]>([
    ["the lists of the image are allowed", {}, "pypi.org", 443, "allowed"],
    ["a block wins over a rule", { blocks: blocks("pypi.org"), rules: [allow("pypi.org")] }, "pypi.org", 443, "denied"],
    ["a deny rule wins over the lists", { rules: [deny("pypi.org")] }, "pypi.org", 443, "denied"],
    ["the first of two rules wins", { rules: [allow("a.example.com"), deny("*.example.com")] }, "a.example.com", 443, "allowed"],
    ["the first of two rules wins in the other order too", { rules: [deny("*.example.com"), allow("a.example.com")] }, "a.example.com", 443, "denied"],
    ["*.x of a rule leaves the apex out", { rules: [allow("*.example.com")] }, "example.com", undefined, "not_allowed"],
    ["an allow rule opens port 80", { rules: [allow("example.com")] }, "example.com", 80, "allowed"],
    ["an allow rule does not open port 22", { rules: [allow("example.com")] }, "example.com", 22, "not_allowed"],
    ["an allow rule for a git host opens port 22", { rules: [allow("GitLab.com")] }, "gitlab.com", 22, "allowed"],
    ["ports of a rule are taken as written", { rules: [allow("example.com", [8443])] }, "example.com", 443, "not_allowed"],
    ["a deny rule without ports denies all of them", { rules: [deny("db.example.com")], sources: [{ label: "l", surface: "list", words: [{ text: "db.example.com:5432" }] }] }, "db.example.com", 5432, "denied"],
    ["a deny rule with ports leaves the others", { rules: [deny("db.example.com", [443])], sources: [{ label: "l", surface: "list", words: [{ text: "db.example.com:443,5432" }] }] }, "db.example.com", 5432, "allowed"],
    ["deny * closes the lists behind it", { rules: [allow("api.anthropic.com"), allow("github.com"), deny("*")] }, "pypi.org", 443, "denied"],
    ["deny * closes literal addresses too", { rules: [allow("api.anthropic.com"), allow("github.com"), deny("*")] }, "140.82.112.3", 22, "denied"],
    ["what stands in front of deny * stays open", { rules: [allow("api.anthropic.com"), allow("github.com"), deny("*")] }, "github.com", 443, "allowed"],
    ["deny over a top-level domain is legal", { rules: [deny("*.ru")] }, "example.ru", 443, "denied"],
    ["allow * opens other names", { rules: [deny("*.evil.org"), allow("*")] }, "example.net", 443, "allowed"],
    ["allow * opens no literal address", { rules: [deny("*.evil.org"), allow("*")] }, "8.8.8.8", 443, "not_allowed"],
    ["allow * stands behind what denies", { rules: [deny("*.evil.org"), allow("*")] }, "a.evil.org", undefined, "denied"],
    ["ssh = off closes port 22 of a listed host", { ssh: "off", sources: [{ label: "l", surface: "list", words: [{ text: "git.example.com:22,443" }] }] }, "git.example.com", 22, "denied"],
    ["ssh = off leaves its other ports", { ssh: "off", sources: [{ label: "l", surface: "list", words: [{ text: "git.example.com:22,443" }] }] }, "git.example.com", 443, "allowed"],
    ["a name with no other port is not even answered then", { ssh: "off", sources: [{ label: "l", surface: "list", words: [{ text: "git.example.com:22" }] }] }, "git.example.com", undefined, "denied"],
  ])("%s", (_row, document, host, port, expected) => {
    expect(reason(build(document), host, port)).toBe(expected);
  });

  test("allow * beside other rules is told with its place", () => {
    expect(build({ rules: [deny("*.evil.org"), { ...allow("*"), place: place(9) }] }).warnings).toEqual([expect.stringContaining("allow * (config.toml:9) opens every name")]);
    expect(build({}).warnings).toEqual([]);
  });
});

test("the git hosts are names of the git-hosts preset", () => {
  const preset = readFileSync(join(import.meta.dirname, "../../../allowlists/presets/git-hosts.sh"), "utf8");
  for (const name of GIT_SSH_HOSTS) expect(preset).toMatch(new RegExp(`"(?:tcp://)?${name.replaceAll(".", String.raw`\.`)}[":]`));
});

describe("GitHub's ranges", () => {
  test("are open on 22 and 443 while github.com is listed, with file and line", () => {
    const { policy } = build({});
    expect(openRanges(policy).map(({ range, port }) => [range.text, port])).toEqual([
      ["140.82.112.0/20", 22],
      ["140.82.112.0/20", 443],
    ]);
    const { rule } = decide(policy, { host: "140.82.112.3", port: 22 });
    expect(rule && [renderRule(rule), rule.origins.map(renderOrigin)]).toEqual(["allow 140.82.112.0/20:22,443", ["allowlists/github.sh:3"]]);
  });

  test.each<[string, Partial<PolicyDocument>]>([
    ["a block takes github.com away", { blocks: blocks("github.com"), critical: [] }],
    ["a rule denies github.com", { rules: [deny("github.com")], critical: [] }],
    ["deny * stands in front", { rules: [allow("github.com"), deny("*")], critical: [] }],
  ])("are closed when %s", (_row, document) => {
    expect(openRanges(build(document).policy)).toEqual([]);
  });

  test("keep 443 alone with ssh = off", () => {
    expect(openRanges(build({ ssh: "off" }).policy).map(({ port }) => port)).toEqual([443]);
  });

  test("apply as well where only a rule names github.com", () => {
    const document = { ...empty, rules: [allow("github.com")], critical: [] };
    const only = { services: "ALLOWED_SERVICES=()\nCRITICAL_SERVICES=()", github: lists.github };
    expect(openRanges(buildBoxPolicy({ document, lists: only, isPublicSuffix, now: 0 }).policy)).toHaveLength(2);
  });
});

describe("private hosts", () => {
  const box = build({ private: [{ host: "DB", ports: [5432] }, { host: "github.com", ports: [8080] }] });

  test.each<[string, string, number | undefined, string | undefined, string]>([
    ["a dotless name is answered", "db", undefined, undefined, "allowed"],
    ["it may lead to a private address on its port", "db", 5432, "172.18.0.3", "allowed"],
    ["it may do so where no port is asked for", "db", undefined, "172.18.0.3", "allowed"],
    ["it has no other port", "db", 443, "172.18.0.3", "not_allowed"],
    ["it may lead to a public address", "db", 5432, "8.8.8.8", "allowed"],
    ["it never leads to the machine's metadata", "db", 5432, "169.254.169.254", "not_allowed_local"],
    ["it never leads to loopback", "db", 5432, "127.0.0.1", "not_allowed_local"],
    ["nor to loopback inside NAT64", "db", 5432, "64:ff9b::7f00:1", "not_allowed_local"],
    ["nor where no port is asked for", "db", undefined, "127.0.0.1", "not_allowed_local"],
    ["a name with public ports leads to private addresses on its private port", "github.com", 8080, "10.0.0.1", "allowed"],
    ["but not on the public one", "github.com", 443, "10.0.0.1", "not_allowed_local"],
    ["a private address is not open by itself", "172.18.0.3", 5432, undefined, "not_allowed"],
  ])("%s", (_row, host, port, to, expected) => {
    expect(reason(box, host, port, to)).toBe(expected);
  });

  test("are pinned, not resolved at the start", () => {
    expect([box.privateNames, box.names.includes("db"), openPorts(box.policy, { kind: "name", name: "db" })]).toEqual([["db", "github.com"], false, [5432]]);
  });

  test("are not pinned when a block takes them away", () => {
    expect(build({ private: [{ host: "db", ports: [5432] }], blocks: blocks("db") }).privateNames).toEqual([]);
  });
});

describe("allow_private", () => {
  test("opens exactly the block it names", () => {
    const box = build({ allowPrivate: [{ text: "192.168.7.0/24" }] });
    expect([reason(box, "pypi.org", 443, "192.168.7.9"), reason(box, "pypi.org", 443, "192.168.8.9")]).toEqual(["allowed", "not_allowed_local"]);
  });

  test("that holds the metadata address is told", () => {
    expect(build({ allowPrivate: [{ text: "169.254.0.0/16" }] }).warnings).toEqual([expect.stringContaining("cloud metadata")]);
  });
});

const load = (domain: string): Promise<BoxPolicy> => loadBoxPolicy({ document: { ...empty, rules: [allow(domain)] }, lists, now: 0 });

describe("what a box resolves and needs", () => {
  test("names of lists and allow rules, wildcards by what the policy answers", () => {
    expect(build({ rules: [allow("*.a.com"), allow("**.b.com"), deny("c.com"), allow("c.com")] }).names).toEqual(["agentbox-wildcard-probe.a.com", "b.com", "agentbox-wildcard-probe.b.com", "api.anthropic.com", "github.com", "pypi.org"]);
  });

  test("the owner's critical services take the place of the image's", () => {
    expect(build({ critical: [{ text: "pypi.org" }] }).list.critical.map(({ name }) => name)).toEqual(["pypi.org"]);
    expect(build({ critical: [] }).list.critical).toEqual([]);
  });

  test("words whose time is over are left out, and the next end is told", () => {
    const source = { label: "policy allow", surface: "list" as const, words: [{ text: "a.com", until: 1000 }, { text: "b.com", until: 3000 }, { text: "c.com" }] };
    const [before, after] = [build({ sources: [source] }, 999), build({ sources: [source] }, 1000)];
    expect([reason(before, "a.com", 443), reason(after, "a.com", 443), reason(after, "b.com", 443), reason(after, "c.com", 443)]).toEqual(["allowed", "not_allowed", "allowed", "allowed"]);
    expect([before.nextExpiry, after.nextExpiry, build({}).nextExpiry]).toEqual([1000, 3000, undefined]);
  });

  test.each<[string, Partial<PolicyDocument>, boolean]>([
    ["rules that deny everything", { rules: [deny("*")] }, true],
    ["a block over everything", { blocks: blocks("*") }, true],
    ["the shipped lists", {}, false],
    ["one name in front of deny *", { rules: [allow("api.anthropic.com"), allow("github.com"), deny("*")] }, false],
  ])("nothing is open: %s", (_row, document, nothing) => {
    expect(build(document).opensNothing).toBe(nothing);
  });

  test("the table of public suffixes is not needed without wildcards, and used with them", async () => {
    expect((await load("example.com")).names).toContain("example.com");
    expect((await load("*.example.com")).names).toContain("agentbox-wildcard-probe.example.com");
    await expect(load("*.co.uk")).rejects.toThrow("opens every domain");
  });
});

describe("mistakes", () => {
  test("are told all at once, each with its place", () => {
    const found = mistakes({
      sources: [{ label: "allow_hosts", surface: "list", words: [{ text: "https://a.com", place: place(3) }] }],
      blocks: blocks("10.1*"),
      rules: [{ ...allow("*.co.uk"), place: place(5) }, { ...deny("a.com:22"), place: place(6) }],
      private: [{ host: "*.corp", ports: [1], place: place(7) }],
      allowPrivate: [{ text: "8.8.8.0/24", place: place(8) }],
      critical: [{ text: "gone.example.com", place: place(9) }],
    });
    expect(found.map((line) => line.split(": ")[0])).toEqual(["config.toml:3", "config.toml:1", "config.toml:5", "config.toml:6", "config.toml:7", "config.toml:8", "config.toml:9"]);
  });

  test.each<[string, Partial<PolicyDocument>, string]>([
    ["a private wildcard", { private: [{ host: "*.corp", ports: [1] }] }, "has a wildcard"],
    ["localhost", { private: [{ host: "LOCALHOST.", ports: [1] }] }, "is the box itself"],
    ["a name below localhost", { private: [{ host: "a.localhost", ports: [1] }] }, "is the box itself"],
    ["a private address", { private: [{ host: "10.0.0.1", ports: [1] }] }, "list the address itself"],
    ["a public block in allow_private", { allowPrivate: [{ text: "140.82.112.0/20" }] }, "list public addresses in allow_hosts"],
    ["a block that is private in part", { allowPrivate: [{ text: "10.0.0.0/7" }] }, "is not a private block"],
    ["everything in allow_private", { allowPrivate: [{ text: "0.0.0.0/0" }] }, "is not a private block"],
    ["a name in allow_private", { allowPrivate: [{ text: "db" }] }, "is not an IP address"],
    ["an allowed block of addresses that is too large", { rules: [allow("0.0.0.0/0")] }, "too large"],
    ["a rule with a URL", { rules: [allow("https://a.com/x")] }, "has the scheme https://"],
    ["a rule with ports in its domain", { rules: [allow("a.com:22,443")] }, 'write domain = "a.com" and ports = [22, 443]'],
    ["a critical service that a rule denies", { rules: [deny("github.com")] }, 'critical service "github.com" is denied by the rule "deny github.com"'],
    ["a critical service that a block takes away", { blocks: blocks("github.com") }, 'was removed by the block "github.com" (block_hosts (config.toml:1))'],
    ["a critical service of the owner that nothing lists", { critical: [{ text: "gone.example.com" }] }, 'add "gone.example.com" to allow_hosts, or remove it from network.critical'],
  ])("%s is refused", (_row, document, expected) => {
    expect(mistakes(document).join("\n")).toContain(expected);
  });
});
