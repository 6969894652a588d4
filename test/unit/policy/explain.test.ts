import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BoxPolicy, buildBoxPolicy } from "../../../policy/box-policy.ts";
import { decide } from "../../../policy/decide.ts";
import { explainQuestion, explanationSchema, renderExplanation, type Explanation } from "../../../policy/explain.ts";
import { parseExplainTarget } from "../../../policy/explain-target.ts";
import { emptyDocument, type PolicyDocument } from "../../../policy/policy-document.ts";

const lists = { services: 'ALLOWED_SERVICES=("github.com" "api.example.com:443,8443")\nCRITICAL_SERVICES=()', github: 'GITHUB_RANGES_DATE="2026-11-21"\nGITHUB_RANGES=("140.82.112.0/20")' };

function build(further: Partial<PolicyDocument> = {}): BoxPolicy {
  const document = { ...emptyDocument({ name: "claude", hosts: [], critical: null }), enforcement: "address" as const, ...further };
  return buildBoxPolicy({ document, lists, isPublicSuffix: () => false, now: 0 });
}

function explain(host: string, further: { port?: number; addresses?: readonly string[] } = {}, document: Partial<PolicyDocument> = {}): Explanation {
  return explainQuestion(build(document), { host, ...further });
}

describe("what a user asks about", () => {
  test.each<[string, string, string, number | undefined]>([
    ["a name", "example.com", "example.com", undefined],
    ["a name and a port", " example.com:8443 ", "example.com", 8443],
    ["an IPv4 address", "192.0.2.1", "192.0.2.1", undefined],
    ["an IPv6 address", "2001:db8::1", "2001:db8::1", undefined],
    ["an IPv6 address and a port", "[2001:db8::1]:22", "[2001:db8::1]", 22],
    ["a URL", "https://example.com/x?y#z", "example.com", 443],
    ["a URL with user and port", "http://me:pw@example.com:8080/x", "example.com", 8080],
    ["a URL of git", "git+ssh://git@github.com/a/b", "github.com", 22],
    ["a remote of git", "git@github.com:a/b.git", "github.com", 22],
    ["a path without a scheme", "example.com/x", "example.com", undefined],
    ["an unknown scheme", "gopher://example.com", "example.com", undefined],
    ["an IPv6 address in a URL", "https://[2001:db8::1]/", "[2001:db8::1]", 443],
  ])("may be %s", (_row, text, host, port) => {
    expect(parseExplainTarget(text)).toMatchObject({ host, port });
  });

  test("is told when it was read as something shorter", () => {
    expect(parseExplainTarget("https://example.com/x").notes).toEqual(['"https://example.com/x" is read as example.com on port 443: paths are not judged']);
    expect(parseExplainTarget("example.com:443").notes).toEqual([]);
  });
});

describe("an explanation", () => {
  test("of an allowed host names rule, file and line, and the open ports", () => {
    expect(renderExplanation(explain("API.example.com:8443"))).toEqual([
      "api.example.com:8443: allowed",
      "  rule       allow api.example.com:443,8443  (allowlists/services.sh:1)",
      "  open ports 443, 8443",
    ]);
  });

  test("of another port names the nearest rule and the command", () => {
    expect(renderExplanation(explain("github.com:80"))).toEqual([
      "github.com:80: refused (not_allowed)",
      "  rule       no rule matches",
      "  nearest    allow github.com:443  (allowlists/services.sh:1)",
      "  open ports 443",
      "  allow it   agentbox policy allow github.com:80",
    ]);
  });

  test("of a blocked host names the block and offers no command", () => {
    const found = explain("chat.example.com", {}, { blocks: [{ label: "block_hosts", words: [{ text: "*.example.com", place: { file: "c.toml", line: 4 } }] }] });
    expect([found.reason, found.rule, found.command]).toEqual(["denied", { text: "deny **.example.com", origins: ["block_hosts (c.toml:4)"] }, null]);
    expect(found.advice).toContain("remove the block");
  });

  test("judges every address, and refuses the host when none is let through", () => {
    const mixed = explain("github.com", { addresses: ["140.82.112.3", "10.0.0.1"] });
    expect([mixed.action, mixed.addresses.map(({ reason }) => reason)]).toEqual(["allow", ["allowed", "not_allowed_local"]]);
    const inside = explain("github.com", { addresses: ["10.0.0.1"] });
    expect([inside.action, inside.reason, inside.command]).toEqual(["deny", "not_allowed_local", null]);
    expect(inside.detail).toContain("10.0.0.1: private use");
  });

  test("of a literal address names GitHub's range", () => {
    expect(explain("140.82.112.3:22").rule).toEqual({ text: "allow 140.82.112.0/20:22,443", origins: ["allowlists/github.sh:2"] });
  });

  test("of a name on a port that its addresses have tells what the kernel does", () => {
    expect(renderExplanation(explain("github.com:22", { addresses: ["140.82.112.3", "20.1.2.3"] }))).toEqual([
      "github.com:22: allowed by address",
      "  rule       allow 140.82.112.0/20:22,443  (allowlists/github.sh:2)",
      "  nearest    allow github.com:443  (allowlists/services.sh:1)",
      "  open ports 443",
      "  address    140.82.112.3: allowed",
      "  address    20.1.2.3: refused (not_allowed)",
    ]);
    expect(explain("github.com", { addresses: ["140.82.112.3"] })).toMatchObject({ action: "allow", byAddress: false, notes: ["by address port 22 is open as well"] });
  });

  test.each<[string, Explanation, object]>([
    ["an address outside of the blocks", explain("github.com:22", { addresses: ["20.1.2.3"] }), { action: "deny", notes: [], command: "agentbox policy allow github.com:22" }],
    ["a port that no block has", explain("github.com:80", { addresses: ["140.82.112.3"] }), { action: "deny", notes: [] }],
    ["ssh = off", explain("github.com:22", { addresses: ["140.82.112.3"] }, { ssh: "off" }), { action: "deny", reason: "denied", byAddress: false }],
    ["a name that nobody answers", explain("example.org:22", { addresses: ["140.82.112.3"] }, { ssh: "any" }), { action: "deny", byAddress: false, addresses: [{ action: "deny" }], notes: [] }],
    ["a name that is answered, with ssh = any", explain("github.com:22", { addresses: ["20.1.2.3"] }, { ssh: "any" }), { action: "allow", byAddress: true, rule: { text: "ssh = any" }, command: null }],
    ["nobody asked where the name leads, and ssh = off", explain("github.com:22", {}, { ssh: "off" }), { action: "deny", notes: [] }],
    ["nobody asked where the name leads", explain("github.com:22"), { action: "deny", notes: [expect.stringContaining("open to the address blocks of allowlists/github.sh")] }],
    ["nobody asked where the name leads, and ssh = any", explain("github.com:22", {}, { ssh: "any" }), { action: "deny", notes: [expect.stringContaining("port 22 is open wherever github.com leads")] }],
  ])("of a name and its addresses: %s", (_row, found, expected) => {
    expect(found).toMatchObject(expected);
  });

  test("of a malformed host says what is wrong", () => {
    expect(explain("git hub.com")).toMatchObject({ action: "deny", reason: "denied", rule: null, command: null, detail: expect.stringContaining("holds a space") });
  });

  test("tells what report mode and ssh = any let through all the same", () => {
    expect(explain("example.org", {}, { report: true }).notes).toEqual([expect.stringContaining("report mode")]);
    expect(explain("192.0.3.4:22", {}, { ssh: "any" })).toMatchObject({ action: "allow", byAddress: true, rule: { text: "ssh = any" }, command: null });
    expect(explain("192.0.3.4:23", {}, { ssh: "any" })).toMatchObject({ action: "deny", byAddress: false });
    expect(explain("10.0.0.1:22", {}, { ssh: "any" })).toMatchObject({ action: "deny", byAddress: false });
    expect(explain("github.com", {}, { report: true, ssh: "any" }).notes).toEqual([]);
  });

  test("prints no control character of a file's name", () => {
    const hostile = explain("x.org", {}, { sources: [{ label: "a\u001b[2Jb", surface: "list", words: [{ text: "x.org" }] }] });
    expect(renderExplanation(hostile)[1]).toBe("  rule       allow x.org:443  (a\\u001b[2Jb)");
  });

  test("says what decide says, is JSON of its schema, and prints no control character", () => {
    const box = build();
    const asked = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("github.com", "api.example.com", "140.82.112.3", "example.org", "\u001b[2Jgithub.com"));
    fc.assert(
      fc.property(asked, fc.option(fc.constantFrom(22, 443, 8443), { nil: undefined }), (host, port) => {
        const found = explainQuestion(box, { host, port });
        const target = parseExplainTarget(host);
        expect(found.reason).toBe(decide(box.policy, { host: target.host, port: port ?? target.port }).reason);
        expect(explanationSchema.parse(JSON.parse(JSON.stringify(found)))).toEqual(found);
        expect(renderExplanation(found).join("")).not.toMatch(/\p{Cc}/u);
      }),
      { numRuns: 2000 },
    );
  });
});
