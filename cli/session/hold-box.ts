import { labelVolumes } from "../engine/volumes.ts";
import { reportSession } from "../log/session-report.ts";
import { requireUnchanged } from "../workspace/mount-sources.ts";
import { openWorkspace, type OpenWorkspace } from "../workspace/workspace.ts";
import { makeTrust } from "./box-trust.ts";
import { makeContainers } from "./make-containers.ts";
import type { Interruption } from "./interruption.ts";
import { renderOwner } from "./owner.ts";
import type { BoxEdge, SettledBox } from "./plan-box.ts";
import { renderPolicyTexts } from "./policy-texts.ts";
import { type BoxContainers, planContainers } from "./plan-containers.ts";
import type { BoxRequest } from "./prepare.ts";
import { readUpstreamLogin, writeProxySecrets } from "./proxy-secrets.ts";
import { runCreated } from "./run-created.ts";
import { removeContainers } from "./sweep.ts";
import { closeSession, openSession, type Session } from "./session.ts";

export type Holding = BoxEdge & { request: BoxRequest; planned: SettledBox; image: string; interruption: Interruption };

/**
 * Makes a box, holds it while it runs, and removes everything again, however it ends. What cannot be
 * removed (the engine stopped answering) keeps its record, and the next start removes it.
 */
export async function holdBox(holding: Holding): Promise<number> {
  const { host, screen, planned, request, interruption } = holding;
  const { engine, network, topology } = planned;
  const session = await openSession(host.agentboxHome, { engine: engine.kind, project: planned.workspace.project, agent: request.profile.name, topology, firewall: network.firewall });
  let workspace: OpenWorkspace | undefined;
  let exitCode: number | null = null;
  try {
    workspace = openWorkspace({ plan: planned.workspace, stateDir: host.agentboxHome, session: session.record.id, planned: planned.sources });
    const containers = planForSession(holding, session, workspace);
    await labelVolumes(engine, planned.stateMounts, { project: planned.workspace.project, home: host.agentboxHome });
    const trust = planned.document.nameWall.intercept && hasNameWall(planned) ? await makeTrust({ engine, image: holding.image, bundles: planned.bundles, roots: planned.workspace.roots }) : undefined;
    for (const text of trust?.notices ?? []) screen.report({ event: "warning", step: "", text });
    if (hasNameWall(planned)) await writeProxySecrets(session, { version: 1, authority: trust?.authority ?? null, upstream: readUpstreamLogin(request.config) });
    const inForce = await makeContainers({ session, containers, bundle: trust?.bundle, policy: renderPolicyTexts({ policy: planned.policy, mode: network.mode, topology, agent: request.profile.name }), engine, screen, signal: interruption.first });
    requireUnchanged(workspace.sources);
    exitCode = await runCreated(holding, { session, workspace, inForce });
    return exitCode;
  } finally {
    if (await removeContainers(engine, session.record)) {
      const notices = workspace?.close() ?? [];
      for (const text of notices) screen.report({ event: "warning", step: "", text });
      if (exitCode !== 0 && exitCode !== null && network.firewall) tellRefused(session, screen);
      await closeSession(session, exitCode);
    } else {
      screen.report({ event: "warning", step: "", text: `${session.record.container} could not be removed; the next start, or \`agentbox cleanup\`, tries again` });
    }
  }
}

function hasNameWall({ network, document }: SettledBox): boolean {
  return network.firewall && network.mode !== "none" && document.enforcement === "name";
}

/** What an agent that failed was refused may be why. */
function tellRefused(session: Session, screen: BoxEdge["screen"]): void {
  for (const line of reportSession(session)) screen.tell(line);
}

function planForSession({ host, request, planned, image }: Holding, session: Session, { mounts, sources }: OpenWorkspace): BoxContainers {
  const { id, container, holder, owner } = session.record;
  const names = { id, container, holder, owner: renderOwner(owner), seccomp: session.seccomp, log: session.log };
  return planContainers({ host, request, planned, image, names, mounts, sources: planned.engine.sameKernel ? sources : undefined });
}
