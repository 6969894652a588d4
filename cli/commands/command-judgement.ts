import { join } from "node:path";
import { findAgentProfile } from "../../policy/agent-profile.ts";
import { renderAlways } from "../../policy/allow-command.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { judgeNeeds, type JudgedNeed, type Preflight } from "../../policy/preflight.ts";
import { DEFAULT_PREFLIGHT_MODE, type PreflightMode } from "../../policy/preflight-mode.ts";
import { type CommandLine, findNeeds } from "../../policy/preflight-needs.ts";
import type { Need } from "../../policy/preflight-need.ts";
import { readOverlay } from "../config/overlay.ts";
import type { Host } from "../host.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import type { RecordedSession } from "../session/session-record.ts";
import { readPathFact } from "../workspace/path-fact.ts";
import { findRunning } from "./policy-show.ts";
import { describeAgent, type ProjectPolicy, readProjectPolicy } from "./project-policy.ts";

/** What is asked: a command line, or what is known to be needed; undefined takes the mode and the agent of the configuration. */
export type Judging = { asked: CommandLine | { needs: readonly Need[] }; mode: PreflightMode | undefined; agent: string | undefined };

/**
 * Judges a command line by the policy of the newest running box of this project, else by that of the next start here.
 * Runs and resolves nothing.
 */
export async function judgeCommand(host: Host, { asked, mode: typed, agent }: Judging): Promise<Preflight> {
  const project = await readProjectPolicy(host, agent);
  const { config, network, trust } = project;
  const proxy = config.config.network_proxy;
  const mode = typed ?? proxy?.preflight_mode ?? DEFAULT_PREFLIGHT_MODE;
  const running = (await findRunning(host, config.projectPath)).find(({ record }) => agent === undefined || record.agent === agent);
  const box = running === undefined ? project.policy : await readLivePolicy(host, project, running);
  const closed = running === undefined && network.mode === "none" ? network.why : undefined;
  const hasKey = readPathFact(join(host.agentboxHome, "ssh", "id_ed25519")).kind === "file";
  const found = "needs" in asked ? asked.needs : findNeeds(asked, mode);
  const needs = judgeNeeds(found, { box, closed, unixSockets: proxy?.policy?.allow_unix_sockets ?? [], hasKey });
  const enforced = running !== undefined || network.firewall;
  return {
    version: 1,
    mode,
    session: running?.record.id ?? null,
    enforced,
    refused: enforced && needs.some(({ action }) => action === "deny"),
    needs: running === undefined ? needs.map(writeAlways) : needs,
    notes: [
      ...(enforced ? [] : [`the firewall is off for a start here (${network.why}), so nothing is refused; this is what the policy would say`]),
      ...(trust.kind === "untrusted" ? [`${config.source ?? "the file"} is not trusted yet`] : []),
    ],
  };
}

/** What a session has by its configuration and by what was changed for it. */
async function readLivePolicy(host: Host, { config }: ProjectPolicy, { directory, record }: RecordedSession): Promise<BoxPolicy> {
  return await readBoxPolicy(host.root, config.document(describeAgent(findAgentProfile(record.agent)), readOverlay(directory)));
}

function writeAlways(need: JudgedNeed): JudgedNeed {
  return need.command === null ? need : { ...need, command: renderAlways(need.command) };
}
