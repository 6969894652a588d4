import type { McpServer } from "@modelcontextprotocol/server";
import { quotePath } from "../../policy/parsed.ts";
import type { SandboxConfig } from "../../policy/sandbox-schema.ts";
import { DEFAULT_LARGE, DEFAULT_TIMEOUT } from "../../policy/sandbox-words.ts";
import type { Grant } from "../../sandbox/grant.ts";
import { judgeInvariants } from "../../sandbox/policy-invariants.ts";
import { RISK_TAGS } from "../../sandbox/request.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

/** Registers what an agent may know of its own limits: each resource in words, and as JSON. */
export function registerResources(server: McpServer, { sandbox, config }: { sandbox: Sandbox; config: SandboxConfig }): void {
  server.registerResource("grants", "agentbox://grants", { title: "Granted folders", description: "The folders that the guard opens, and what may be done in each.", mimeType: "text/markdown" }, (uri) => {
    const grants = sandbox.listGrants().map(describeGrant);
    return { contents: render(uri, renderGrants(sandbox.listGrants()), { session: sandbox.sessionId, grants }) };
  });
  server.registerResource("policy", "agentbox://policy", { title: "Rules of the guard", description: "What is always refused or asked about, and the rules of this configuration.", mimeType: "text/markdown" }, (uri) => {
    const policy = describePolicy(config);
    return { contents: render(uri, renderPolicy(policy), policy) };
  });
}

/** One line for each granted folder. */
export function renderGrants(grants: readonly Grant[]): string {
  const lines = grants.map((grant) => {
    const { access, trash, hidden, hardLinks, output } = grant;
    const may = Object.entries(access).flatMap(([right, given]) => (given ? [right] : []));
    const notes = [trash ? "deleted files can be restored" : "", hidden ? "hidden files too" : "", hardLinks ? "files with several names too" : "", output ? "results belong here" : ""].filter((note) => note !== "");
    return `- ${quotePath(grant.root)}: ${may.join(", ")}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`;
  });
  return ["Granted folders; relative paths begin at the first. Everything else is refused.", ...lines].join("\n");
}

function describeGrant({ root, access, output, hidden, hardLinks, trash }: Grant): Record<string, unknown> {
  return { root, access, output, hidden, hardLinks, trash };
}

type Policy = ReturnType<typeof describePolicy>;

function describePolicy({ rules = [], large = DEFAULT_LARGE, timeout = DEFAULT_TIMEOUT, quota_bytes: quotaBytes, quota_files: quotaFiles }: SandboxConfig) {
  const asked = judgeInvariants(RISK_TAGS).map(({ id, reason }) => ({ id, decision: "confirm", reason }));
  const denied = [
    { id: "invariant:outside-roots", decision: "deny", reason: "the path lies in no granted folder" },
    { id: "invariant:cross-root", decision: "deny", reason: "nothing is moved from one granted folder into another" },
  ];
  return { invariants: [...denied, ...asked], rules, large, timeoutSeconds: timeout, quotaBytes, quotaFiles };
}

function renderPolicy({ invariants, rules, large, timeoutSeconds, quotaBytes, quotaFiles }: Policy): string {
  const limits = [quotaBytes === undefined ? "" : `${quotaBytes} bytes`, quotaFiles === undefined ? "" : `${quotaFiles} files`].filter((limit) => limit !== "");
  return [
    "What no rule changes:",
    ...invariants.map(({ id, decision, reason }) => `- ${id}: ${decision === "deny" ? "refused" : "a human is asked"}; ${reason}`),
    "",
    rules.length === 0 ? "There are no further rules: within a grant the rest is allowed." : "Rules, of which the first that matches decides:",
    ...rules.map(({ id, action, ...conditions }) => `- ${id}: ${action}${Object.keys(conditions).length === 0 ? "" : ` where ${JSON.stringify(conditions)}`}`),
    "",
    `A file is large from ${large} on. A human has ${timeoutSeconds} seconds to answer; then it is no.${limits.length === 0 ? "" : ` The session may write ${limits.join(" and ")}.`}`,
  ].join("\n");
}

function render(uri: URL, words: string, data: unknown): { uri: string; mimeType: string; text: string }[] {
  return [
    { uri: uri.href, mimeType: "text/markdown", text: words },
    { uri: uri.href, mimeType: "application/json", text: JSON.stringify(data, null, 2) },
  ];
}
