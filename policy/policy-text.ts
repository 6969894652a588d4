import { POLICY_JSON_PATH } from "./box-spec.ts";
import { escapeUnseen } from "./parsed.ts";
import { ALLOW_COMMAND, type PolicyView } from "./policy-view.ts";

/** Lines of names before the text refers to the JSON, and the width at which they wrap. */
const MAX_NAME_LINES = 24;
const LINE_WIDTH = 110;

const TITLE = "# The network of this box";

/**
 * The policy as a short text for the agent in the box: what is reachable, how a refusal looks, what to do
 * then. Markdown of less than 60 lines, however many entries there are.
 */
export function renderPolicyText(view: PolicyView): string {
  const body = view.mode === "full" ? describeOpen() : view.mode === "none" ? describeClosed() : describeAllowlist(view);
  return escapeUnseen(`${[TITLE, "", ...body].join("\n")}\n`);
}

function describeOpen(): readonly string[] {
  return ["This box runs without a firewall: programs in it reach what the host's network reaches.", "Be careful with what you send and to whom; nothing here stops a mistake."];
}

function describeClosed(): readonly string[] {
  return [
    "This box has no network at all. Every name lookup and every connection fails at once; that is meant.",
    "Work with what is here. If you need a host, say which one and why: the human can allow it on the host with",
    "",
    `    ${ALLOW_COMMAND}`,
    "",
    "and start the box again.",
  ];
}

function describeAllowlist(view: PolicyView): readonly string[] {
  return [
    "A firewall lets programs in this box reach the hosts below and nothing else. `*.x` means names below x,",
    "`**.x` means x and names below it. The port is 443 where none is written.",
    "",
    "## Reachable",
    "",
    ...listHosts(view),
    ...describeFurther(view),
    "",
    "## How a refusal looks",
    "",
    "- A name that is not allowed does not exist here: NXDOMAIN at once (`Could not resolve host`, `ENOTFOUND`).",
    "- A connection that is not allowed is refused at once (`Connection refused`, `ECONNREFUSED`).",
    ...describeNameWall(view),
    "- Other resolvers, DNS over HTTPS or TLS, QUIC, ICMP and address literals are refused as well.",
    "",
    "## What to do then",
    "",
    "It is a decision of the owner and no outage: do not retry, and do not look for a way around it (mirrors, proxies,",
    "tunnels, other addresses). Say which host you need and for what. The human can allow it on the host with",
    "",
    `    ${ALLOW_COMMAND}`,
    "",
    "(HOST:PORT for another port than 443); it works within a second, without a restart. You cannot run it here.",
    "",
    `All of it, with the origin of every entry: ${POLICY_JSON_PATH}`,
  ];
}

/** The proxy judges what a connection itself says, with or without proxy variables. */
function describeNameWall({ enforcement, methods, intercept }: PolicyView): readonly string[] {
  if (enforcement === "address") return [];
  return [
    "- On ports 80 and 443 a proxy reads the host in HTTP and TLS: 403 with `x-proxy-error` and the reason in the body, or the",
    "  TLS alert `access_denied`. TLS needs a server name, and Host, SNI and proxy target have to be one host.",
    ...(methods === "limited" ? ["- Only GET, HEAD and OPTIONS are let through; other methods are refused with 403."] : []),
    ...(intercept ? ["- TLS is opened by this box's own authority; programs find its certificate by SSL_CERT_FILE and the like."] : []),
  ];
}

/** Wraps the names into lines and cuts them off where there are too many. */
function listHosts(view: PolicyView): readonly string[] {
  const texts = [
    ...view.entries.filter(({ deniedBy }) => deniedBy === null).map(({ text }) => text),
    ...view.private.map(({ name, ports }) => `${name}:${ports.join(",")}`),
    ...view.rules.filter(({ action }) => action === "allow").map(({ text }) => text.replace(/^allow /, "").replace(/(?<!,):443$/, "")),
  ];
  if (texts.length === 0) return ["Nothing."];
  const lines: string[] = [];
  let shown = 0;
  for (const text of new Set(texts)) {
    const word = `\`${text}\``;
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length + 2 <= LINE_WIDTH) lines[lines.length - 1] = `${last}, ${word}`;
    else if (lines.length === MAX_NAME_LINES) return [...lines, `- and ${new Set(texts).size - shown} more, see ${POLICY_JSON_PATH}`];
    else lines.push(`- ${word}`);
    shown += 1;
  }
  return lines;
}

function describeFurther({ github, rules, blocks, report, ssh, base }: PolicyView): readonly string[] {
  const denied = rules.filter(({ action }) => action === "deny").length + blocks.length;
  return [
    ...(github === null ? [] : [`- GitHub's own address blocks on port ${github.ports.join(" and ")}, for git`]),
    ...(base === "deny-list" ? ["- every other public name on ports 80 and 443, but for what is denied"] : []),
    ...(ssh === "any" ? ["- port 22 of every public address"] : []),
    ...(denied === 0 ? [] : ["", `Denied although something above may match: ${listDenied(blocks, rules)}`]),
    ...(report ? ["", "Report mode: other public hosts are let through too, and written down for the owner."] : []),
  ];
}

function listDenied(blocks: PolicyView["blocks"], rules: PolicyView["rules"]): string {
  const texts = [...blocks.map(({ text }) => text), ...rules.filter(({ action }) => action === "deny").map(({ text }) => text.replace(/^deny /, ""))];
  const shown = texts.slice(0, 12).map((text) => `\`${text}\``);
  return `${shown.join(", ")}${texts.length > shown.length ? ` and ${texts.length - shown.length} more` : ""}.`;
}
