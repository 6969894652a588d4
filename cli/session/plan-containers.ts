import type { BoxSpec, MountedPath } from "../../policy/box-spec.ts";
import { DECISION_LOG_DIR, KEEPER_DIR } from "../../policy/box-spec.ts";
import type { ContainerPlan } from "../engine/container-plan.ts";
import type { Host } from "../host.ts";
import type { Mount } from "../mount.ts";
import { chooseProbe } from "../../policy/probe.ts";
import { buildBoxSpec } from "./box-spec.ts";
import type { SettledBox } from "./plan-box.ts";
import type { BoxRequest } from "./prepare.ts";

/** What a session adds to a planned box. */
type SessionNames = {
  id: string;
  container: string;
  holder: string | null;
  /** The owner as a label. */
  owner: string;
  seccomp: string;
  /** Where the decision log goes. */
  log: string;
};

export type ContainerInput = {
  host: Pick<Host, "agentboxHome" | "terminal" | "env">;
  request: BoxRequest;
  planned: SettledBox;
  image: string;
  names: SessionNames;
  /** Of the project; undefined where the box numbers files differently. */
  sources: readonly MountedPath[] | undefined;
  /** The project's own mounts, when they stand. */
  mounts: readonly Mount[];
};

/** A container to be made and what it is told; the mounts of its visible directory come with the writing of it. */
export type ContainerPart = { plan: ContainerPlan; spec: BoxSpec };
export type BoxContainers = { box: ContainerPart; holder: ContainerPart | undefined };

/** Works out the containers of a box: one, or a holder and the agent's that joins it. Makes nothing. */
export function planContainers(input: ContainerInput): BoxContainers {
  const { planned, names, mounts } = input;
  const projectMounts = [...mounts, ...planned.stateMounts];
  const whole = planPart(input, "box");
  if (names.holder === null) {
    return { box: { spec: whole.spec, plan: { ...whole.plan, mounts: [...projectMounts, ...(planned.network.firewall ? planKeeperMounts(names.log) : [])] } }, holder: undefined };
  }
  const holder: ContainerPart = {
    // Nothing of the project's or the agent's: what is not there cannot be read, should the holder's programs be taken over.
    spec: { ...whole.spec, role: "holder", command: [], cwd: "/", env: {}, logins: [], mounts: [] },
    plan: { ...whole.plan, name: names.holder, role: "holder", terminal: false, mounts: planKeeperMounts(names.log), memory: undefined, cpus: undefined },
  };
  const agent: ContainerPart = {
    spec: { ...whole.spec, role: "agent", dns: { upstreams: [] }, siteProxy: [], published: [], gateways: [], probe: (planned.policy && chooseProbe(planned.policy.policy)) ?? null },
    plan: { ...whole.plan, role: "agent", user: planned.boxUser, network: { kind: "container", name: names.holder }, mounts: projectMounts, ports: [], dns: [], addHosts: [] },
  };
  return { box: agent, holder };
}

function planPart({ host, request, planned, image, names, sources }: ContainerInput, role: "box"): ContainerPart {
  const { network, workspace, ports, upstreams, siteProxy, gateways, user, command, env, document, limits, dns } = planned;
  const { id, container, owner, seccomp } = names;
  const { admin, profile } = request;
  const spec = buildBoxSpec({ session: id, profile, document, network, user, admin, command, project: workspace.project, env, upstreams, siteProxy, gateways, ports, mounts: sources });
  const plan: ContainerPlan = {
    name: container,
    role,
    image,
    session: id,
    owner,
    project: workspace.project,
    home: host.agentboxHome,
    terminal: host.terminal,
    user: { uid: 0, gid: 0 },
    firewall: network.firewall,
    jsonLog: host.env["AGENTBOX_LOG"] === "json",
    network: planned.boxNetwork,
    mounts: [],
    ports,
    dns,
    addHosts: request.options.addHosts,
    ...limits,
    seccomp,
  };
  return { spec, plan };
}

/** A place for the keeper's sockets, and the directory of the host for the log; what lies around them keeps the agent out. */
export function planKeeperMounts(log: string): Mount[] {
  return [
    { kind: "tmpfs", target: `${KEEPER_DIR}/run`, options: ["rw", "noexec", "nosuid", "nodev", "mode=1777", "size=4m"] },
    { kind: "bind", source: log, target: DECISION_LOG_DIR, readOnly: false },
  ];
}
