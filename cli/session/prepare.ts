import { type AgentProfile, agentEnvironment } from "../../policy/agent-profile.ts";
import type { EffectiveList } from "../../policy/effective-list.ts";
import { UsageError } from "../../policy/errors.ts";
import type { Options } from "../args.ts";
import type { AgentWord } from "../args-values.ts";
import type { PortMapping } from "../engine/container-plan.ts";
import type { EngineTraits } from "../engine/container-plan.ts";
import { planEnvironment, readEnvironment } from "../environment/environment.ts";
import { readSiteCa } from "../environment/site-ca.ts";
import { planSiteProxy, type SiteProxy } from "../environment/site-proxy.ts";
import type { Host } from "../host.ts";
import { changeImageSettings, type ImageSettings, readImageSettings } from "../image/settings.ts";
import type { Mount } from "../mount.ts";
import { BOX_HOME } from "../workspace/box-paths.ts";
import { readWorkspace } from "../workspace/facts.ts";
import { planWorkspace, type WorkspacePlan } from "../workspace/plan.ts";
import { findSshDirectory, planStateMounts } from "../workspace/state-mounts.ts";
import { readEffectiveList } from "./allowlist.ts";
import { decideNetwork, type NetworkDecision } from "./firewall-switch.ts";

/** What is to run in a box. */
export type BoxRequest = {
  profile: AgentProfile;
  /** The agent as typed, when the image must hold it. */
  agent: AgentWord | undefined;
  /** The program and its arguments; an agent's depend on whether the firewall is on. */
  renderCommand: (firewall: boolean) => string[];
  admin: boolean;
  /** Port of a sign-in callback that a browser on the host must reach. */
  callback: { port: number; onLoopback: boolean } | undefined;
  options: Options;
};

/** Everything about a box that is known before anything is made. */
export type PreparedBox = {
  network: NetworkDecision;
  list: EffectiveList | undefined;
  workspace: WorkspacePlan;
  /** Volumes and the SSH key; the project's own mounts are the workspace's. */
  stateMounts: Mount[];
  ports: PortMapping[];
  command: string[];
  env: Record<string, string>;
  /** Ids of the agent. */
  user: { uid: number; gid: number };
  certificates: string[];
  proxy: SiteProxy;
  settings: ImageSettings;
  /** Whether the settings differ from the remembered ones. */
  settingsChanged: boolean;
  notices: string[];
};

/** Reads what the start depends on and decides everything; changes nothing. Throws with every mistake found. */
export async function prepareBox(host: Host, request: BoxRequest, engine: EngineTraits): Promise<PreparedBox> {
  const { profile, options, admin } = request;
  const sshDir = findSshDirectory(host.agentboxHome);
  const [list, workspace, remembered] = await Promise.all([
    needsList(host, options) ? readEffectiveList(host.root, profile) : undefined,
    readProject(host, options),
    readImageSettings(host.agentboxHome),
  ]);
  const network = decideNetwork({ variable: host.env["AGENTBOX_FIREWALL"], fullNetwork: options.fullNetwork, entries: list?.entries.length ?? 0 });
  if (network.mode === "none" && options.network !== undefined) throw new UsageError({ what: "--network has no meaning for a box without network", expected: "an allowlist that is not empty", fix: "leave --network out" });
  const user = chooseUser(host, engine);
  const settings = changeImageSettings(remembered, { wish: options.image, agent: request.agent, epoch: undefined });
  const writableRoots = workspace.roots.map(({ path }) => path);
  const { ca, notices: caNotices } = readSiteCa({ caFile: settings.caFile, hostEnv: host.env, cwd: host.cwd, writableRoots });
  const facts = await readEnvironment({ projectPath: workspace.project, ignoreDotEnv: options.ignoreDotEnv, options: options.env, hostEnv: host.env });
  const boxUid = admin ? 0 : user.uid;
  const environment = planEnvironment({
    facts,
    profile: agentEnvironment(profile, { home: BOX_HOME, firewall: network.firewall, root: boxUid === 0 }),
    boxUid,
    siteCa: ca !== null,
    sshKey: sshDir !== null,
    roots: workspace.roots,
    gitConfig: workspace.gitConfig,
  });
  const proxy = planSiteProxy({ hostEnv: host.env, firewall: network.firewall, boxEnv: environment.env });
  return {
    network,
    list,
    workspace,
    stateMounts: planStateMounts({ agent: profile.name, projectPath: workspace.project, uid: host.user.uid, sshDir }),
    ports: [...options.ports, ...publishCallback(request)],
    command: request.renderCommand(network.firewall),
    env: environment.env,
    user,
    certificates: ca?.certificates ?? [],
    proxy,
    settings,
    settingsChanged: JSON.stringify(settings) !== JSON.stringify(remembered),
    notices: [...network.notices, ...workspace.notices, ...caNotices, ...environment.notices, ...proxy.notices],
  };
}

function needsList(host: Host, options: Options): boolean {
  return options.dryRun || (host.env["AGENTBOX_FIREWALL"] === "1" && !options.fullNetwork);
}

async function readProject(host: Host, options: Options): Promise<WorkspacePlan> {
  const facts = await readWorkspace({ cwd: host.cwd, addDirs: options.addDirs, home: host.home, stateDir: host.agentboxHome, installation: host.root, env: host.env });
  return planWorkspace({ facts, yesSecrets: options.yesSecrets, writable: [] });
}

/** With a rootless Docker the host's user is the box's root, and every other id there belongs to nobody. */
export function chooseUser({ user }: Host, engine: EngineTraits): { uid: number; gid: number } {
  return engine.kind === "docker" && engine.rootless ? { uid: 0, gid: 0 } : user;
}

function publishCallback({ callback }: BoxRequest): PortMapping[] {
  if (callback === undefined || callback.onLoopback) return [];
  return [{ address: "127.0.0.1", host: callback.port, container: callback.port, protocol: "tcp" }];
}
