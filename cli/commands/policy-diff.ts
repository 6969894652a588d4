import { findAgentProfile } from "../../policy/agent-profile.ts";
import { type PolicyView, viewPolicy } from "../../policy/policy-view.ts";
import { findLiveBoxes, type LiveBox } from "../config/live-change.ts";
import { readOverlay } from "../config/overlay.ts";
import { readConfig, type SessionConfig } from "../config/read-config.ts";
import { judgeTrust, renderUntrusted } from "../config/trust.ts";
import type { Edge } from "../edge.ts";
import type { EngineKind } from "../engine/engine.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import { readEnforced } from "../session/enforced-policy.ts";
import { describeAgent, findProject } from "./project-policy.ts";

/** Compares the configuration with what each running box enforces, and with what its owner last trusted. */
export async function diffPolicy({ host, print }: Edge, engine: EngineKind | undefined): Promise<number> {
  const config = await readConfig({ host, projectPath: findProject(host) });
  const trust = judgeTrust(host, config);
  await print(trust.kind === "untrusted" ? `${renderUntrusted(trust)}\nAgree to it: agentbox policy trust\n` : `${config.source ?? "no configuration file"}: nothing that is not trusted\n`);
  const boxes = await findLiveBoxes(host, config.projectPath, engine);
  if (boxes.length === 0) await print("No box of this project runs with a firewall.\n");
  for (const box of boxes) await print(`${(await describeBox(host.root, config, box)).join("\n")}\n`);
  return 0;
}

async function describeBox(root: string, config: SessionConfig, box: LiveBox): Promise<string[]> {
  const { record, directory, visible } = box;
  const { id, agent, topology } = record;
  const enforced = readEnforced(visible);
  if (enforced === undefined) return [`session ${id}: what it enforces is not known`];
  const overlay = readOverlay(directory);
  const policy = await readBoxPolicy(root, config.document(describeAgent(findAgentProfile(agent)), overlay));
  const configured = viewPolicy(policy, { mode: "allowlist", topology, enforcement: policy.enforcement, agent });
  const lines = compareViews(enforced, configured);
  const changes = overlay.allow.length + overlay.deny.length;
  const own = changes === 0 ? "" : `, with ${changes} ${changes === 1 ? "change" : "changes"} of its own`;
  return lines.length === 0 ? [`session ${id}: enforces the configuration${own}`] : [`session ${id}: differs from the configuration${own}`, ...lines];
}

/** The lines by which two policies differ: `-` is enforced and not configured, `+` the other way round. */
export function compareViews(enforced: PolicyView, configured: PolicyView): string[] {
  const [before, after] = [listLines(enforced), listLines(configured)];
  return [...[...before].filter((line) => !after.has(line)).map((line) => `- ${line}`), ...[...after].filter((line) => !before.has(line)).map((line) => `+ ${line}`)];
}

function listLines(view: PolicyView): Set<string> {
  return new Set([
    ...view.entries.map(({ text }) => `allow ${text}`),
    ...view.private.map(({ name, ports }) => `allow ${name}:${ports.join(",")}, private`),
    ...view.blocks.map(({ text }) => `block ${text}`),
    ...view.rules.map(({ text }, index) => `rule ${index + 1}: ${text}`),
    ...view.allowPrivate.map((text) => `private addresses ${text}`),
    `ssh ${view.ssh}`,
    `report ${view.report}`,
  ]);
}
