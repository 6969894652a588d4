import type { AgentProfile } from "../../policy/agent-profile.ts";
import type { BoxSpec, MountedPath } from "../../policy/box-spec.ts";
import type { PolicyDocument } from "../../policy/policy-document.ts";
import type { PortMapping } from "../engine/container-plan.ts";
import { BOX_HOME } from "../workspace/box-paths.ts";
import type { NetworkDecision } from "./firewall-switch.ts";

export type BoxSpecInput = {
  session: string;
  profile: AgentProfile;
  document: PolicyDocument;
  network: Pick<NetworkDecision, "firewall" | "mode">;
  user: { uid: number; gid: number };
  admin: boolean;
  command: readonly string[];
  project: string;
  env: Readonly<Record<string, string>>;
  upstreams: readonly string[];
  siteProxy: readonly string[];
  gateways: readonly string[];
  ports: readonly PortMapping[];
  /** Undefined where the box numbers files differently. */
  mounts: readonly MountedPath[] | undefined;
};

/** Puts together what the entrypoint of a box that is one container is told. */
export function buildBoxSpec(input: BoxSpecInput): BoxSpec {
  const { session, profile, document, network, user, admin, command, project, env, upstreams, siteProxy, gateways, ports, mounts } = input;
  return {
    version: 2,
    session,
    firewall: network.firewall,
    mode: network.mode,
    role: "box",
    policy: document,
    user: { ...user, home: BOX_HOME },
    admin,
    command: [...command],
    cwd: project,
    env: { ...env },
    dns: { upstreams: [...upstreams] },
    siteProxy: [...siteProxy],
    published: ports.map(({ container, protocol }) => ({ port: container, protocol })),
    gateways: [...gateways],
    logins: [...profile.credentials],
    ...(mounts === undefined ? {} : { mounts: [...mounts] }),
  };
}
