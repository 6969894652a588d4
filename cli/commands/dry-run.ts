import { renderPlace } from "../../policy/errors.ts";
import { renderOrigin } from "../../policy/effective-list.ts";
import { renderRule } from "../../policy/policy.ts";
import { renderCreateArgv } from "../engine/container-argv.ts";
import type { Host } from "../host.ts";
import { nameImage } from "../image/ensure-image.ts";
import type { Mount } from "../mount.ts";
import { planBox, type PlannedBox } from "../session/plan-box.ts";
import { type ContainerPart, planContainers } from "../session/plan-containers.ts";
import type { BoxRequest } from "../session/prepare.ts";
import type { Screen } from "../ui/screen.ts";
import { renderKernelText } from "./dry-run-rules.ts";

/** Works out a start in full and returns what it would do, as text; makes and changes nothing. */
export async function dryRun(host: Host, request: BoxRequest, screen: Screen): Promise<string> {
  const planned = await planBox(host, request, screen);
  const { settings, certificates, user, workspace, network, topology, engine } = planned;
  const { tag } = await nameImage({ root: host.root, settings, certificates, user });
  const upstreams = planned.upstreams === "ask-engine" ? [] : planned.upstreams;
  const directory = `${host.agentboxHome}/sessions/SESSION`;
  const names = { id: "SESSION", container: "agentbox-SESSION", holder: topology === "sidecar" ? "agentbox-SESSION-net" : null, owner: "OWNER", seccomp: `${directory}/seccomp.json`, log: `${directory}/log` };
  const { box, holder } = planContainers({ host, request, planned: { ...planned, upstreams }, image: tag, names, mounts: workspace.mounts, sources: undefined });
  const command = ({ plan }: ContainerPart): string => [engine.client.program, ...renderCreateArgv(plan, engine)].map(quoteWord).join(" ");
  return [
    section("Network", renderNetwork(planned)),
    section("Configuration", renderConfiguration(request)),
    section(network.firewall ? "Allowed" : "Allowed, were the firewall on", renderAllowed(planned)),
    ...renderRemovals(planned),
    section("Project", [workspace.project]),
    section("Mounts", [...box.plan.mounts.map(renderMountLine), ...workspace.created.map((path) => `${path} (made for the box, removed after it)`)]),
    // Values may be secret.
    section("Variables of the agent, without their values", [Object.keys(planned.env).toSorted().join(" ")]),
    section("Image", [`${tag} on ${settings.base}, agents: ${settings.agents.join(" ") || "none"}, packages: ${settings.packages.join(" ") || "none"}`]),
    section("Command in the box", [planned.command.map(quoteWord).join(" ")]),
    ...(holder === undefined ? [section("Engine command", [command(box)])] : [section("Engine command of the holder", [command(holder)]), section("Engine command of the agent", [command(box)])]),
    ...renderKernelText({ planned, upstreams }).map(({ title, text }) => section(title, text.trimEnd().split("\n"))),
  ].join("\n");
}

function section(title: string, lines: readonly string[]): string {
  return `${title}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

function renderNetwork({ network, document, topology, upstreams, siteProxy, notices }: PlannedBox): string[] {
  const { firewall, mode, why } = network;
  if (!firewall) return [`firewall off: ${why}`, ...notices];
  const resolvers = upstreams === "ask-engine" ? "as the engine says at the start" : upstreams.join(" ") || "none";
  return [`firewall on, mode ${mode}, by ${document.enforcement}: ${why}`, `topology ${topology}`, `resolvers behind the box's own: ${resolvers}`, ...(siteProxy.length === 0 ? [] : [`the site's proxy: ${siteProxy.join(" ")}`]), ...notices];
}

function renderConfiguration({ config, trusted }: BoxRequest): string[] {
  if (config.source === undefined) return ["none; `agentbox setup` writes one"];
  const files = config.files.map(({ name }) => `${name} ${trusted ? "(trusted, or it only takes away)" : "(NOT TRUSTED: a start would ask, or refuse without a terminal)"}`);
  return config.ofProject ? files : [config.source];
}

function renderAllowed({ policy }: PlannedBox): string[] {
  if (policy === undefined || policy.opensNothing) return ["nothing"];
  const rules = policy.policy.rules.filter(({ action }) => action === "allow").map((rule) => ({ text: renderRule(rule), origins: [...new Set(rule.origins.map((origin) => renderOrigin(origin)))] }));
  const width = Math.max(...rules.map(({ text }) => text.length)) + 2;
  const critical = policy.list.critical.map(({ name, port }) => `${name}:${port}`).join(", ");
  return [...rules.map(({ text, origins }) => `${text.padEnd(width)}${origins.join(", ")}`), `critical: ${critical === "" ? "none" : critical}`];
}

function renderRemovals({ policy }: PlannedBox): string[] {
  const { removed = [], blocks = [] } = policy?.list ?? {};
  const denied = blocks.map(({ text, origin }) => `${text}  ${renderOrigin(origin)}`);
  const taken = removed.map(({ text, by }) => `${text}  by ${by.text}${by.origin.place === undefined ? "" : ` (${renderPlace(by.origin.place)})`}`);
  return [...(denied.length === 0 ? [] : [section("Denied", denied)]), ...(taken.length === 0 ? [] : [section("Removed from the list", taken)])];
}

function renderMountLine(mount: Mount): string {
  switch (mount.kind) {
    case "bind":
      return `${mount.target} ${mount.readOnly ? "read-only" : "writable"}${mount.source === mount.target ? "" : `, from ${mount.source}`}`;
    case "volume":
      return `${mount.target} volume ${mount.name}`;
    case "tmpfs":
      return `${mount.target} empty, in memory`;
  }
}

/** Quotes a word so that the line can be pasted into a shell. */
function quoteWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
