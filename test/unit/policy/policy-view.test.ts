import { describe, expect, test } from "vitest";
import { buildBoxPolicy } from "../../../policy/box-policy.ts";
import { DEFAULT_NAME_WALL, emptyDocument, type PolicyDocument } from "../../../policy/policy-document.ts";
import { renderPolicyShow } from "../../../policy/policy-show.ts";
import { renderPolicyText } from "../../../policy/policy-text.ts";
import { policyViewSchema, viewPolicy, type PolicyView, type ViewContext } from "../../../policy/policy-view.ts";

const lists = { services: 'ALLOWED_SERVICES=(\n  "github.com"\n  "chatgpt.com"\n  "*.example.com:443,8443"\n)\nCRITICAL_SERVICES=("github.com")', github: 'GITHUB_RANGES_DATE="2026-11-21"\nGITHUB_RANGES=("140.82.112.0/20" "2606:50c0::/32")' };
const context: ViewContext = { mode: "allowlist", topology: "container", enforcement: "address", agent: "claude" };

function view(further: Partial<PolicyDocument> = {}, changed: Partial<ViewContext> = {}): PolicyView {
  const document = { ...emptyDocument({ name: "claude", hosts: [], critical: null }), enforcement: "address" as const, ...further };
  return viewPolicy(buildBoxPolicy({ document, lists, isPublicSuffix: () => false, now: 0 }), { ...context, ...changed });
}

const full: Partial<PolicyDocument> = {
  sources: [{ label: "preset rust", surface: "allowlist-file", words: [{ text: "crates.io", place: { file: "allowlists/presets/rust.sh", line: 9 } }] }],
  blocks: [{ label: "block_hosts", words: [{ text: "chatgpt.com", place: { file: "c.toml", line: 3 } }] }],
  rules: [
    { domain: "crates.io", action: "deny", place: { file: "c.toml", line: 7 } },
    { domain: "a.org", action: "allow", ports: [8443] },
  ],
  private: [{ host: "db", ports: [5432] }],
  allowPrivate: [{ text: "10.0.0.0/8" }],
  report: true,
  ssh: "any",
};

describe("the view of a policy", () => {
  test("shows every source, in canonical form with its origin", () => {
    const shown = view(full);
    expect(shown).toMatchObject({
      entries: [
        { text: "github.com", ports: [443], origins: ["allowlists/services.sh:2"], deniedBy: null },
        { text: "*.example.com:443,8443", ports: [443, 8443], deniedBy: null },
        { text: "crates.io", origins: ["preset rust (allowlists/presets/rust.sh:9)"], deniedBy: "deny crates.io" },
      ],
      private: [{ name: "db", ports: [5432], origins: ["private"] }],
      github: { blocks: 2, ports: [22, 443], origin: "allowlists/github.sh" },
      removed: [{ text: "chatgpt.com", by: "chatgpt.com", byOrigin: "block_hosts (c.toml:3)" }],
      blocks: [{ text: "chatgpt.com", origin: "block_hosts (c.toml:3)" }],
      rules: [
        { text: "deny crates.io", action: "deny", origins: ["c.toml:7"] },
        { text: "allow a.org:8443", action: "allow" },
      ],
      presets: ["rust"],
      critical: [{ name: "github.com", port: 443 }],
      allowPrivate: ["10.0.0.0/8"],
      ssh: "any",
      report: true,
    });
    expect(policyViewSchema.parse(JSON.parse(JSON.stringify(shown)))).toEqual(shown);
  });

  test("of a box without a policy is empty", () => {
    const shown = viewPolicy(null, { ...context, mode: "full" });
    expect([policyViewSchema.parse(shown).entries, shown.mode]).toEqual([[], "full"]);
  });
});

describe("the text for agents", () => {
  test("says what is reachable, how a refusal looks and what a human can run", () => {
    const text = renderPolicyText(view(full));
    for (const part of ["`github.com`", "`*.example.com:443,8443`", "`db:5432`", "`a.org:8443`", "NXDOMAIN", "refused at once", "agentbox policy allow HOST", "Denied although something above may match: `chatgpt.com`, `crates.io`", "Report mode", "port 22 of every public address"]) expect(text).toContain(part);
  });

  test("leaves out what a rule closes", () => {
    expect(renderPolicyText(view(full)).split("Denied although")[0]).not.toContain("crates.io");
  });

  test("stays under 60 lines with 1,000 entries and names where the rest is", () => {
    const words = Array.from({ length: 1000 }, (_, index) => ({ text: `host-${index}.example.org:443,${index + 1000}` }));
    const text = renderPolicyText(view({ sources: [{ label: "l", surface: "list", words }], blocks: [{ label: "b", words: Array.from({ length: 100 }, (_, index) => ({ text: `b${index}.com` })) }] }));
    expect(text.split("\n").length).toBeLessThan(60);
    expect(text).toMatch(/and \d+ more, see \/run\/agentbox\/policy\.json/);
    const shown = text.match(/`[a-z0-9.*-]+\.(?:org|com)(?::[0-9,]+)?`/g)?.filter((word) => !word.startsWith("`b")).length ?? 0;
    expect(text).toContain(`and ${1002 + 1 - shown} more`);
  });

  test("tells of the proxy where there is one, and of its methods and certificate only where they are so", () => {
    const named = (changes: Partial<PolicyDocument["nameWall"]> = {}) => renderPolicyText(view({ enforcement: "name", nameWall: { ...DEFAULT_NAME_WALL, ...changes } }, { enforcement: "name" }));
    expect(named()).toContain("403 with `x-proxy-error`");
    expect(named()).not.toMatch(/GET|authority/);
    expect(named({ methods: "limited", intercept: true })).toMatch(/Only GET, HEAD and OPTIONS.*own authority/s);
    expect(renderPolicyText(view())).not.toContain("x-proxy-error");
  });

  test.each([
    ["full", "without a firewall"],
    ["none", "no network at all"],
  ] as const)("tells a box of mode %s that it is %s", (mode, part) => {
    expect(renderPolicyText(viewPolicy(null, { ...context, mode }))).toContain(part);
  });
});

describe("policy show", () => {
  test("prints every entry with its origin and every removal with its block", () => {
    expect(renderPolicyShow(view(full, { notes: ["firewall asked for by AGENTBOX_FIREWALL"] }))).toEqual([
      "network allowlist, enforcement address, topology container, agent claude",
      "ssh: any",
      "report mode: what is not allowed is let through and written down",
      "presets: rust",
      "private addresses that names may lead to: 10.0.0.0/8",
      "critical: github.com",
      "",
      "warning:",
      "  ssh = any opens port 22 of every public address",
      "",
      "note:",
      "  firewall asked for by AGENTBOX_FIREWALL",
      "",
      "blocked:",
      "  chatgpt.com  block_hosts (c.toml:3)",
      "",
      "rules, first match wins:",
      "  deny crates.io    c.toml:7",
      "  allow a.org:8443  rules",
      "",
      "allowed:",
      "  github.com                         allowlists/services.sh:2",
      "  *.example.com:443,8443             allowlists/services.sh:4",
      "  crates.io                          preset rust (allowlists/presets/rust.sh:9); closed by the rule deny crates.io",
      "  db:5432                            private; may be private",
      "  2 address blocks of GitHub:22,443  allowlists/github.sh",
      "",
      "removed:",
      "  chatgpt.com  allowlists/services.sh:3; by the block chatgpt.com (block_hosts (c.toml:3))",
    ]);
  });

  test("says what the proxy does beside the lists", () => {
    const shown = renderPolicyShow(view({ enforcement: "name", base: "deny-list", nameWall: { ...DEFAULT_NAME_WALL, methods: "limited", intercept: true } }, { enforcement: "name" }));
    expect(shown.slice(0, 4)).toEqual([
      "network allowlist, enforcement name, topology container, agent claude",
      "limited mode: GET, HEAD and OPTIONS only",
      "TLS is opened and judged, with a certificate of the session's own authority",
      "every public name that nothing below denies is reachable on ports 80 and 443",
    ]);
  });

  test("obeys no control character of a file's name", () => {
    const hostile = view({ sources: [{ label: "a\u001b[2Jb", surface: "list", words: [{ text: "x.org" }] }] });
    expect(renderPolicyShow(hostile).join("")).not.toContain("\u001b");
    expect(renderPolicyShow(hostile).join("")).toContain("a\\u001b[2Jb");
  });
});
