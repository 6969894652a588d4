import { lookup } from "node:dns/promises";
import { type AgentProfile, DEFAULT_AGENT, findAgentProfile } from "../../policy/agent-profile.ts";
import type { BoxPolicy } from "../../policy/box-policy.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";
import { type PolicyView, viewPolicy } from "../../policy/policy-view.ts";
import type { Topology } from "../args-values.ts";
import { readConfig, type SessionConfig } from "../config/read-config.ts";
import { judgeTrust, type TrustState } from "../config/trust.ts";
import type { Host } from "../host.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import { chooseTopology } from "../session/box-user.ts";
import { decideNetwork, type NetworkDecision } from "../session/firewall-switch.ts";
import { resolvePath } from "../workspace/path-fact.ts";

/** The policy that a box started here and now would get, and how it comes about. */
export type ProjectPolicy = {
  config: SessionConfig;
  trust: TrustState;
  profile: AgentProfile;
  document: PolicyDocument;
  policy: BoxPolicy;
  network: NetworkDecision;
  topology: Topology;
};

/** The real path of the directory that the command line runs in: the project, as a start has it. */
export function findProject({ cwd }: Pick<Host, "cwd">): string {
  return resolvePath(cwd) ?? cwd;
}

/** Reads and builds the policy of the project for an agent: the one named, else the configured one, else the default. */
export async function readProjectPolicy(host: Host, agent: string | undefined): Promise<ProjectPolicy> {
  const config = await readConfig({ host, projectPath: findProject(host) });
  const profile = findAgentProfile(agent ?? config.config.box?.agent ?? DEFAULT_AGENT);
  const document = config.document(describeAgent(profile));
  const policy = await readBoxPolicy(host.root, document);
  const network = decideNetwork({
    variable: host.env["AGENTBOX_FIREWALL"],
    fullNetwork: false,
    configured: config.config.network === undefined ? undefined : { mode: config.mode, why: config.why },
    required: config.userConfig.network?.required === true,
    opensNothing: policy.opensNothing,
  });
  const topology = chooseTopology({ network, boxUser: host.user, admin: false, typed: undefined, configured: config.config.network?.topology });
  return { config, trust: judgeTrust(host, config), profile, document, policy, network, topology };
}

/** What a policy document holds of an agent. */
export function describeAgent({ name, hosts, critical }: AgentProfile): PolicyDocument["agent"] {
  return { name, hosts: hosts.map(({ entry }) => entry), critical };
}

/** The policy as people and programs are shown it. */
export function viewProject({ config, trust, profile, policy, network, topology }: ProjectPolicy, notes: readonly string[]): PolicyView {
  const untrusted = trust.kind === "untrusted" ? [`${config.source ?? "the file"} is not trusted yet; a start asks, or run \`agentbox policy trust\``] : [];
  const firewall = network.mode === "allowlist" ? [] : network.notices;
  return viewPolicy(network.mode === "allowlist" ? policy : null, { mode: network.mode, topology, enforcement: policy.enforcement, agent: profile.name, notes: [...config.notices, ...untrusted, ...firewall, ...notes] });
}

/** Asks this machine where a name leads; nothing where it leads nowhere. To be asked for allowed names only. */
export async function askHost(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}
