import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildBoxPolicy } from "../../../policy/box-policy.ts";
import { decide } from "../../../policy/decide.ts";
import { DEFAULT_NAME_WALL, emptyDocument, type PolicyDocument } from "../../../policy/policy-document.ts";
import { type JudgedNeed, judgeNeeds, preflightSchema, type PreflightContext, renderNeed, renderRefusedNeed } from "../../../policy/preflight.ts";
import type { HostNeed, Need } from "../../../policy/preflight-need.ts";

const lists = { services: 'ALLOWED_SERVICES=("github.com" "api.example.com:443,8443")\nCRITICAL_SERVICES=()', github: 'GITHUB_RANGES_DATE="2026-11-21"\nGITHUB_RANGES=("140.82.112.0/20")' };

function context(document: Partial<PolicyDocument> = {}, further: Partial<PreflightContext> = {}): PreflightContext {
  const box = buildBoxPolicy({ document: { ...emptyDocument({ name: "claude", hosts: [], critical: null }), ...document }, lists, isPublicSuffix: () => false, now: 0 });
  return { box, closed: undefined, unixSockets: [], hasKey: false, ...further };
}

const host = (name: string, port = 443, more: Partial<HostNeed> = {}): Need => ({ kind: "host", program: "curl", host: name, port, form: "url", web: port === 80 ? "http" : "https", ...more });
const agent = (sure: boolean): Need => ({ kind: "socket", program: "ssh", socket: "ssh-agent", sure });
const socket = (path: string, sure = true): Need => ({ kind: "socket", program: "docker", socket: path, sure });

const judge = (need: Need, given = context()): JudgedNeed | undefined => judgeNeeds([need], given)[0];
const lines = (needs: readonly Need[], given = context()): string[] => judgeNeeds(needs, given).map(renderNeed);
const limited = { ...DEFAULT_NAME_WALL, methods: "limited" } as const;
const blocked: Partial<PolicyDocument> = { blocks: [{ label: "block_hosts", words: [{ text: "*.bad.example", place: { file: "c.toml", line: 4 } }] }] };

describe("a host", () => {
  test.each<[string, Need, PreflightContext, Partial<JudgedNeed>]>([
    ["is allowed by its rule", host("API.example.com", 8443), context(), { action: "allow", reason: "allowed", rule: { text: "allow api.example.com:443,8443", origins: ["allowlists/services.sh:1"] }, command: null }],
    ["is refused without a rule, with the command", host("other.example"), context(), { action: "deny", reason: "not_allowed", rule: null, command: "agentbox policy allow other.example" }],
    ["is refused on another port, with the command for it", host("api.example.com", 80), context(), { action: "deny", reason: "not_allowed", command: "agentbox policy allow api.example.com:80" }],
    ["is refused by a block, without a command", host("x.bad.example"), context(blocked), { action: "deny", reason: "denied", rule: { text: "deny **.bad.example", origins: ["block_hosts (c.toml:4)"] }, command: null, advice: expect.stringContaining("remove the block") }],
    ["is refused as a private address", host("10.0.0.1", 80), context(), { action: "deny", command: null, advice: expect.stringContaining("private") }],
    ["is refused as malformed", host("a_..example"), context(), { action: "deny", reason: "denied", command: null }],
    ["is let through and written down in report mode", host("other.example"), context({ report: true }), { action: "report", reason: "not_allowed" }],
    ["is refused by a block in report mode as well", host("x.bad.example"), context({ ...blocked, report: true }), { action: "deny", reason: "denied" }],
    ["depends on its address where the port is open to blocks of addresses", host("github.com", 22, { web: undefined }), context(), { action: "depends", reason: "not_allowed", detail: expect.stringContaining("reachable if github.com leads there"), command: null }],
    ["depends on its address with ssh = any", host("github.com", 22, { web: undefined }), context({ ssh: "any" }), { action: "depends", detail: expect.stringContaining("ssh = any") }],
    ["is refused on port 22 with ssh = off", host("github.com", 22, { web: undefined }), context({ ssh: "off" }), { action: "deny", reason: "denied" }],
    ["that is not answered is refused on such a port too", host("other.example", 22, { web: undefined }), context({ ssh: "any" }), { action: "deny", reason: "not_allowed" }],
    ["is refused where a box has no network, whatever allows it", host("api.example.com"), context({}, { closed: "network.mode = none" }), { action: "deny", reason: "not_allowed", detail: "a box here has no network at all (network.mode = none)", command: null }],
  ])("%s", (_row, need, given, expected) => {
    expect(judge(need, given)).toMatchObject({ kind: "host", program: "curl", ...expected });
  });

  test.each<[string, Need, Partial<PolicyDocument>, string]>([
    ["asks for interception inside TLS", host("api.example.com"), { nameWall: limited }, "mitm_required"],
    ["lets requests that read through where they are seen", host("api.example.com"), { nameWall: { ...limited, intercept: true } }, "allowed"],
    ["refuses requests that write where they are seen", host("api.example.com", 443, { method: "POST" }), { nameWall: { ...limited, intercept: true } }, "method_not_allowed"],
    ["asks for interception where TLS is left alone", host("api.example.com"), { nameWall: { ...limited, intercept: true, passthrough: [{ text: "api.example.com" }] } }, "mitm_required"],
    ["lets plain requests that read through", host("plain.example", 80), { nameWall: limited }, "allowed"],
    ["refuses plain requests that write", host("plain.example", 80, { method: "DELETE" }), { nameWall: limited }, "method_not_allowed"],
    ["says nothing of other ports", host("api.example.com", 8443), { nameWall: limited }, "allowed"],
    ["says nothing of ports that speak something else", host("opaque.example"), { nameWall: limited }, "allowed"],
    ["says nothing without the name wall", host("api.example.com"), { nameWall: limited, enforcement: "address" }, "allowed"],
    ["names the host's own reason first", host("other.example"), { nameWall: limited }, "not_allowed"],
  ])("in limited mode: %s", (_row, need, document, reason) => {
    const sources = [{ label: "list", surface: "list" as const, words: [{ text: "plain.example:80" }, { text: "tcp://opaque.example:443" }] }];
    const found = judge(need, context({ sources, ...document }));
    expect([found?.reason, found?.action]).toEqual([reason, reason === "allowed" ? "allow" : "deny"]);
  });
});

describe("a socket", () => {
  const LISTED = { unixSockets: ["$SSH_AUTH_SOCK", "/run/x.sock", "/var/run/docker.sock"] };
  test.each<[string, Need, Partial<PreflightContext>, Partial<JudgedNeed>]>([
    ["of the agent is refused where it is not listed", agent(false), {}, { action: "deny", reason: "unix_socket_unsupported", advice: expect.stringMatching(/agentbox ssh-init.*ssh-agent in allow_unix_sockets/) }],
    ["of the agent is allowed where it is listed", agent(false), LISTED, { action: "allow", reason: "allowed" }],
    ["of the agent is needed by what asks for nothing else", agent(true), { hasKey: true }, { action: "deny" }],
    ["that is listed is allowed", socket("/run/x.sock"), LISTED, { action: "allow" }],
    ["that is not listed is refused", socket("/run/y.sock"), LISTED, { action: "deny", advice: "list the socket in allow_unix_sockets of [network_proxy.policy]" }],
    ["that a program of the box may have made depends", socket("/run/y.sock", false), LISTED, { action: "depends", advice: null }],
    ["of an engine is refused although it is listed, as the mounts refuse it", socket("/var/run/docker.sock", false), LISTED, { action: "deny", detail: expect.stringContaining("engine"), advice: expect.stringContaining("on the host") }],
  ])("%s", (_row, need, further, expected) => {
    expect(judge(need, context({}, further))).toMatchObject({ kind: "socket", ...expected });
  });

  test("of the agent is not needed where boxes have a key", () => {
    expect(judgeNeeds([agent(false)], context({}, { hasKey: true }))).toEqual([]);
  });
});

describe("in words", () => {
  test("each is a line: what is said, where to, who, why, and what allows it", () => {
    expect(lines([host("api.example.com"), host("other.example", 80), host("x.bad.example"), host("2001:db8::1"), host("github.com", 22, { program: "git", web: undefined }), agent(true)], context(blocked))).toEqual([
      "allowed  api.example.com:443  curl  rule allow api.example.com:443,8443 (allowlists/services.sh:1)",
      "refused  other.example:80  curl  not_allowed  allow it: agentbox policy allow other.example:80",
      'refused  x.bad.example:443  curl  denied  rule deny **.bad.example (block_hosts (c.toml:4))  remove the block "**.bad.example" (block_hosts (c.toml:4)) first: a block wins over every allow',
      expect.stringMatching(/^refused {2}\[2001:db8::1\]:443 {2}curl {2}not_allowed/),
      expect.stringMatching(/^depends {2}github\.com:22 {2}git {2}not_allowed {2}port 22 is open to the address blocks/),
      expect.stringMatching(/^refused {2}ssh-agent {2}ssh {2}unix_socket_unsupported {2}make a key/),
    ]);
  });

  test("a refusal for whoever wanted to run it names host, reason and remedy, as every wall does", () => {
    const [named, local] = judgeNeeds([host("other.example"), agent(true)], context());
    expect(named && renderRefusedNeed(named)).toBe("AgentBox blocked other.example:443: not_allowed; to allow it, a human runs on the host: agentbox policy allow other.example");
    expect(local && renderRefusedNeed(local)).toMatch(/^AgentBox blocked ssh-agent: unix_socket_unsupported; to allow it: make a key for boxes/);
  });
});

test("whatever is needed, the answer is JSON of its schema and says of a host what decide says", () => {
  const given = context(blocked);
  // What a host never holds when it gets here.
  const hosts = fc.oneof(fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[@/?#\\:[\] \t]/g, "")), fc.constantFrom("api.example.com", "x.bad.example", "10.0.0.1", "::1", "github.com"));
  fc.assert(
    fc.property(hosts, fc.integer({ min: 1, max: 65_535 }), (name, port) => {
      const needs = judgeNeeds([host(name, port)], given);
      const answer = { version: 1, mode: "strict", session: null, enforced: true, refused: true, needs, notes: [] };
      expect(preflightSchema.parse(JSON.parse(JSON.stringify(answer)))).toEqual(answer);
      const [need] = needs;
      expect(need?.reason).toBe(decide(given.box.policy, { host: name, port }).reason);
    }),
    { numRuns: 3000 },
  );
});
