import { type AgentProfile, agentEnvironment } from "../../policy/agent-profile.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import { CA_BUNDLE_PATH } from "../../policy/box-spec.ts";
import { UsageError } from "../../policy/errors.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";
import type { Options } from "../args.ts";
import type { AgentWord, Topology } from "../args-values.ts";
import type { SessionConfig } from "../config/read-config.ts";
import type { EngineTraits, PortMapping } from "../engine/container-plan.ts";
import { planEnvironment, readEnvironment } from "../environment/environment.ts";
import { readSiteCa } from "../environment/site-ca.ts";
import { planSiteProxy, type SiteProxy, withBuildProxy } from "../environment/site-proxy.ts";
import type { Host } from "../host.ts";
import { changeImageSettings, type ImageSettings, readImageSettings } from "../image/settings.ts";
import type { Mount } from "../mount.ts";
import { BOX_HOME } from "../workspace/box-paths.ts";
import { readWorkspace } from "../workspace/facts.ts";
import { planWorkspace, type WorkspacePlan } from "../workspace/plan.ts";
import { readEngineSockets } from "../workspace/host-facts.ts";
import { findSshDirectory, planStateMounts } from "../workspace/state-mounts.ts";
import { planUnixSockets } from "../workspace/unix-sockets.ts";
import { readBoxPolicy } from "./allowlist.ts";
import { chooseTopology, chooseUser, requireUsualIds } from "./box-user.ts";
import { warnReadableLogin } from "./proxy-secrets.ts";
import { withEnforcement } from "./enforcement.ts";
import { decideNetwork, type NetworkDecision } from "./firewall-switch.ts";
import { type ConfiguredBox, leaveTyped } from "./merge-options.ts";

/** What a command line wants to run in a box. */
export type TypedRequest = {
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

/** What is to run in a box, with what its configuration says; `options` hold the configured values too. */
export type BoxRequest = TypedRequest & {
  config: SessionConfig;
  configured: ConfiguredBox;
  /** False in a dry run only. */
  trusted: boolean;
};

/** Everything about a box that is known before anything is made. */
export type PreparedBox = {
  network: NetworkDecision;
  topology: Topology;
  document: PolicyDocument;
  /** Undefined where no firewall asks for it. */
  policy: BoxPolicy | undefined;
  workspace: WorkspacePlan;
  /** Volumes and the SSH key; the project's own mounts are the workspace's. */
  stateMounts: Mount[];
  ports: PortMapping[];
  dns: readonly string[];
  limits: ConfiguredBox["limits"];
  command: string[];
  env: Record<string, string>;
  /** Further bundles of certificates that the agent's programs were to trust. */
  bundles: readonly string[];
  /** Ids of the host's user, which the agent has except as administrator. */
  user: { uid: number; gid: number };
  boxUser: { uid: number; gid: number };
  /** Certificates (PEM) of the site's own authority, for build and box. */
  certificates: string[];
  proxy: SiteProxy;
  settings: ImageSettings;
  /** What is remembered of the settings: without what the project's file says. Undefined where that is known already. */
  toRemember: ImageSettings | undefined;
  notices: string[];
};

/** Reads what the start depends on and decides everything; changes nothing. Throws with every mistake found. */
export async function prepareBox(host: Host, request: BoxRequest, engine: EngineTraits): Promise<PreparedBox> {
  const { profile, options, admin, config, configured } = request;
  const user = chooseUser(host, engine);
  requireUsualIds(user);
  const boxUser = admin ? { uid: 0, gid: 0 } : user;
  const sshDir = findSshDirectory(host.agentboxHome);
  const document = withEnforcement(config.document({ name: profile.name, hosts: profile.hosts.map(({ entry }) => entry), critical: profile.critical }), options.enforcement);
  const [policy, workspace, remembered] = await Promise.all([
    needsPolicy(host, request) ? readBoxPolicy(host.root, document) : undefined,
    readProject(host, request),
    readImageSettings(host.agentboxHome),
  ]);
  const network = decideNetwork({ ...describeWish(host, request), opensNothing: policy?.opensNothing ?? false });
  if (network.mode === "none" && options.network !== undefined) throw new UsageError({ what: "--network has no meaning for a box without network", expected: "an allowlist that is not empty", fix: "leave --network out" });
  const topology = chooseTopology({ network, boxUser, admin, typed: options.topology, configured: config.config.network?.topology });
  const toRemember = changeImageSettings(remembered, { wish: options.image, agent: request.agent, epoch: undefined });
  const settings = changeImageSettings(toRemember, { wish: leaveTyped(options.image, configured.image), agent: request.agent, epoch: undefined });
  const writableRoots = workspace.roots.map(({ path }) => path);
  const { ca, notices: caNotices } = readSiteCa({ caFile: settings.caFile, hostEnv: host.env, cwd: host.cwd, writableRoots });
  const facts = await readEnvironment({ projectPath: workspace.project, ignoreDotEnv: options.ignoreDotEnv, options: options.env, hostEnv: host.env });
  const environment = planEnvironment({
    facts,
    profile: agentEnvironment(profile, { home: BOX_HOME, firewall: network.firewall, root: boxUser.uid === 0 }),
    boxUid: boxUser.uid,
    siteCa: ca !== null,
    sshKey: sshDir !== null,
    roots: workspace.roots,
    gitConfig: workspace.gitConfig,
    web: describeWeb(network, document, options),
  });
  const sockets = planUnixSockets({
    words: config.config.network_proxy?.policy?.allow_unix_sockets ?? [],
    hostEnv: host.env,
    platform: process.platform,
    engineSockets: readEngineSockets({ home: host.home, env: host.env }),
    stateDir: host.agentboxHome,
  });
  const proxy = planSiteProxy({ hostEnv: withBuildProxy(host.env, configured.proxy), enforcement: network.firewall ? document.enforcement : undefined, boxEnv: environment.env });
  return {
    network,
    topology,
    document,
    policy,
    workspace,
    stateMounts: [...planStateMounts({ agent: profile.name, projectPath: workspace.project, uid: host.user.uid, sshDir }), ...sockets.mounts],
    ports: [...options.ports, ...publishCallback(request)],
    dns: options.dns,
    limits: configured.limits,
    command: request.renderCommand(network.firewall),
    env: { ...environment.env, ...sockets.env },
    bundles: environment.bundles,
    user,
    boxUser,
    certificates: ca?.certificates ?? [],
    proxy,
    settings,
    toRemember: JSON.stringify(toRemember) === JSON.stringify(remembered) ? undefined : toRemember,
    notices: [...network.notices, ...describePolicy(network, policy), ...config.notices, ...workspace.notices, ...caNotices, ...environment.notices, ...sockets.notices, ...proxy.notices, ...warnReadableLogin(config)],
  };
}

/** What the agent's programs are told of the box's proxy; undefined where it has none. */
function describeWeb({ firewall, mode }: NetworkDecision, { enforcement, nameWall }: PolicyDocument, { addHosts }: BoxRequest["options"]): Parameters<typeof planEnvironment>[0]["web"] {
  if (!firewall || mode === "none" || enforcement !== "name") return undefined;
  return { nameWall, caBundle: nameWall.intercept ? CA_BUNDLE_PATH : undefined, ownHosts: addHosts.map(({ name }) => name) };
}

function describeWish(host: Host, { config, options }: BoxRequest): Omit<Parameters<typeof decideNetwork>[0], "opensNothing"> {
  const { mode, why } = config;
  return {
    variable: host.env["AGENTBOX_FIREWALL"],
    fullNetwork: options.fullNetwork,
    configured: config.config.network === undefined ? undefined : { mode, why },
    required: config.userConfig.network?.required === true,
  };
}

/** A start without a firewall does not fail over a list that nobody asks. */
function needsPolicy(host: Host, request: BoxRequest): boolean {
  return request.options.dryRun || decideNetwork({ ...describeWish(host, request), opensNothing: false }).firewall;
}

/** What is legal and opens much is said at every start. */
function describePolicy({ firewall, mode }: NetworkDecision, policy: BoxPolicy | undefined): string[] {
  if (!firewall || mode === "none" || policy === undefined) return [];
  const report = policy.report ? ["REPORT MODE: what no rule allows is LET THROUGH and written down; `agentbox policy suggest` makes a list of it"] : [];
  return [...report, ...policy.warnings];
}

async function readProject(host: Host, { options, configured }: BoxRequest): Promise<WorkspacePlan> {
  const facts = await readWorkspace({ cwd: host.cwd, addDirs: options.addDirs, home: host.home, stateDir: host.agentboxHome, installation: host.root, env: host.env });
  return planWorkspace({ facts, yesSecrets: options.yesSecrets, writable: configured.writable });
}

function publishCallback({ callback }: BoxRequest): PortMapping[] {
  if (callback === undefined || callback.onLoopback) return [];
  return [{ address: "127.0.0.1", host: callback.port, container: callback.port, protocol: "tcp" }];
}
