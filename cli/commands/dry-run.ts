import { renderOrigin } from "../../policy/effective-list.ts";
import { renderCreateArgv } from "../engine/container-argv.ts";
import type { Host } from "../host.ts";
import { nameImage } from "../image/ensure-image.ts";
import type { Mount } from "../mount.ts";
import { planBox, type PlannedBox } from "../session/plan-box.ts";
import type { BoxRequest } from "../session/prepare.ts";
import type { Screen } from "../ui/screen.ts";

/** Works out a start in full and returns what it would do, as text; makes and changes nothing. */
export async function dryRun(host: Host, request: BoxRequest, screen: Screen): Promise<string> {
  const planned = await planBox(host, request, screen);
  const { root } = host;
  const { settings, certificates, user, workspace, network } = planned;
  const { tag } = await nameImage({ root, settings, certificates, user });
  const { engine, ports } = planned;
  const mounts = [...workspace.mounts, ...planned.stateMounts];
  const argv = renderCreateArgv(
    {
      name: "agentbox-SESSION",
      image: tag,
      session: "SESSION",
      owner: "OWNER",
      project: workspace.project,
      home: host.agentboxHome,
      terminal: host.terminal,
      firewall: network.firewall,
      jsonLog: host.env["AGENTBOX_LOG"] === "json",
      network: planned.boxNetwork,
      mounts,
      ports,
      dns: request.options.dns,
      addHosts: request.options.addHosts,
      seccomp: `${host.agentboxHome}/sessions/SESSION/seccomp.json`,
    },
    engine,
  );
  return [
    section("Network", [network.firewall ? `firewall on, mode ${network.mode}` : "firewall off", ...planned.notices]),
    section(network.firewall ? "Allowed" : "Allowed, were the firewall on", renderAllowed(planned)),
    section("Project", [workspace.project]),
    section("Mounts", [...mounts.map(renderMountLine), ...workspace.created.map((path) => `${path} (made for the box, removed after it)`)]),
    // Values may be secret.
    section("Variables of the agent, without their values", [Object.keys(planned.env).toSorted().join(" ")]),
    section("Image", [`${tag} on ${settings.base}, agents: ${settings.agents.join(" ") || "none"}, packages: ${settings.packages.join(" ") || "none"}`]),
    section("Command in the box", [planned.command.map(quoteWord).join(" ")]),
    section("Engine command", [[engine.client.program, ...argv].map(quoteWord).join(" ")]),
  ].join("\n");
}

function section(title: string, lines: readonly string[]): string {
  return `${title}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

function renderAllowed({ list }: PlannedBox): string[] {
  if (list === undefined || list.entries.length === 0) return ["nothing"];
  const width = Math.max(...list.entries.map(({ text }) => text.length)) + 2;
  const critical = new Set(list.critical.map(({ name }) => name));
  return list.entries.map(({ text, origins }) => `${text.padEnd(width)}${origins.map(renderOrigin).join(", ")}${critical.has(text) ? ", critical" : ""}`);
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
