import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, FirewallError } from "../../policy/errors.ts";
import { endedByReader, runAttached } from "../engine/attach.ts";
import { brokenPipeCode } from "../engine/client.ts";
import type { ContainerPlan } from "../engine/container-plan.ts";
import { createContainer, readContainerState, removeContainer, signalContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { explainContainerFailure } from "../engine/failure.ts";
import { stopTimeoutSeconds } from "../engine/security.ts";
import { labelVolumes } from "../engine/volumes.ts";
import { requireUnchanged } from "../workspace/mount-sources.ts";
import { openWorkspace, type OpenWorkspace } from "../workspace/workspace.ts";
import { buildBoxSpec } from "./box-spec.ts";
import { relayCallback } from "./callback.ts";
import { Interrupted, type Interruption } from "./interruption.ts";
import { launchOnTerminal } from "./launch.ts";
import { renderOwner } from "./owner.ts";
import type { BoxEdge, PlannedBox } from "./plan-box.ts";
import type { BoxRequest } from "./prepare.ts";
import { closeSession, openSession, type Session, writeSessionFiles } from "./session.ts";

const REMOVAL_PAUSE_MS = 200;

export type Holding = BoxEdge & { request: BoxRequest; planned: PlannedBox; image: string; interruption: Interruption };

/**
 * Makes a box, holds it while it runs, and removes everything again, however it ends. What cannot be
 * removed (the engine stopped answering) keeps its record, and the next start removes it.
 */
export async function holdBox(holding: Holding): Promise<number> {
  const { host, screen, planned } = holding;
  const session = await openSession(host.agentboxHome, { engine: planned.engine.kind, project: planned.workspace.project });
  let workspace: OpenWorkspace | undefined;
  try {
    workspace = openWorkspace({ plan: planned.workspace, stateDir: host.agentboxHome, session: session.record.id, planned: planned.sources });
    await createContainer(planned.engine, await planContainer(holding, session, workspace));
    holding.interruption.first.throwIfAborted();
    requireUnchanged(workspace.sources);
    return await runCreated(holding, session, workspace);
  } finally {
    const gone = await removeContainer(planned.engine, session.record.container).catch(() => false);
    if (gone) {
      const notices = workspace?.close() ?? [];
      for (const text of notices) screen.report({ event: "warning", step: "", text });
      await closeSession(session.directory);
    } else {
      screen.report({ event: "warning", step: "", text: `${session.record.container} could not be removed; the next start, or \`agentbox cleanup\`, tries again` });
    }
  }
}

async function planContainer({ host, request, planned, image }: Holding, session: Session, { mounts, sources }: OpenWorkspace): Promise<ContainerPlan> {
  const { network, workspace, stateMounts, engine, ports, upstreams, gateways, user, command, env } = planned;
  const { id, container, owner } = session.record;
  const spec = buildBoxSpec({ session: id, profile: request.profile, network, user, admin: request.admin, command, project: workspace.project, env, upstreams, gateways, ports, mounts: engine.sameKernel ? sources : undefined });
  const sessionMounts = await writeSessionFiles({ session, spec, terminal: host.terminal });
  await labelVolumes(engine, stateMounts, { project: workspace.project, home: host.agentboxHome });
  return {
    name: container,
    image,
    session: id,
    owner: renderOwner(owner),
    project: workspace.project,
    home: host.agentboxHome,
    terminal: host.terminal,
    firewall: network.firewall,
    jsonLog: host.env["AGENTBOX_LOG"] === "json",
    network: planned.boxNetwork,
    mounts: [...mounts, ...stateMounts, ...sessionMounts],
    ports,
    dns: request.options.dns,
    addHosts: request.options.addHosts,
    seccomp: session.seccomp,
  };
}

async function runCreated({ host, screen, request, planned, interruption }: Holding, session: Session, workspace: OpenWorkspace): Promise<number> {
  const { engine, user } = planned;
  const { container } = session.record;
  let clientCode: number | null = null;
  const replaced = new AbortController();
  const over = new AbortController();
  const unwatch = workspace.watch((reason) => {
    replaced.abort(new FirewallError({ what: reason, expected: "protected files that stay in place while a box runs", fix: "start again" }));
    void removeUntilGone(engine, container, over.signal);
  });
  const signal = AbortSignal.any([replaced.signal, interruption.first]);
  const { callback } = request;
  const endRelay = callback?.onLoopback === true ? await relayCallback({ engine, container, port: callback.port, user }) : () => {};
  const endStopping = stopOnSignal(engine, container, interruption, host.terminal);
  try {
    signal.throwIfAborted();
    if (host.terminal) await launchOnTerminal({ engine, session, screen, signal });
    else clientCode = await runAttached(engine, container, true);
  } catch (error) {
    // A box that is gone fails in many ways; this is the cause.
    replaced.signal.throwIfAborted();
    throw error;
  } finally {
    over.abort();
    endStopping();
    endRelay();
    unwatch();
  }
  signal.throwIfAborted();
  return await readExitCode(engine, container, clientCode);
}

/**
 * Removes a box at once, whatever its state, without time to end in: the agent could use it to write what
 * is no longer protected. Tries again until it is gone, or `over`.
 */
async function removeUntilGone(engine: Engine, container: string, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    // Removal alone would let Podman ask the agent to end first; a box that does not run yet takes no signal.
    await signalContainer(engine, container, "SIGKILL").catch(() => undefined);
    if (await removeContainer(engine, container).catch(() => false)) return;
    await sleep(REMOVAL_PAUSE_MS);
  }
}

/** The exit code of what ran in the box, apart from failures of the engine, which have codes of the same range. */
async function readExitCode(engine: Engine, container: string, clientCode: number | null): Promise<number> {
  const state = await readContainerState(engine, container);
  if (state === undefined) throw new EngineError({ what: `${container} was removed by someone else while it ran`, fix: "start again" });
  if (state.status === "created") throw explainContainerFailure(engine, state.error || "its own message stands above");
  if (state.status !== "exited" && state.status !== "stopped") {
    if (endedByReader(clientCode)) return brokenPipeCode;
    throw new EngineError({ what: `the engine's client left the box while it ran (${state.status}); the box was ended`, fix: "see whether the engine was restarted, and start again" });
  }
  return state.exitCode;
}

/**
 * Passes a signal on to the agent, which has as long to end as `docker stop` gives; a second signal, or
 * that time, ends it. Before the agent runs there is nothing to wait for.
 */
function stopOnSignal(engine: Engine, container: string, { first, second }: Interruption, terminal: boolean): () => void {
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => void removeContainer(engine, container).catch(() => undefined);
  const pass = (): void => {
    const signal = first.reason instanceof Interrupted ? first.reason.cause : "SIGTERM";
    // A program with a terminal of its own is used to a hang-up, and outlives an interrupt.
    void signalContainer(engine, container, terminal && signal === "SIGINT" ? "SIGTERM" : signal).catch(() => undefined);
    timer = setTimeout(end, stopTimeoutSeconds * 1_000);
  };
  first.addEventListener("abort", pass, { once: true });
  second.addEventListener("abort", end, { once: true });
  return () => {
    clearTimeout(timer);
    first.removeEventListener("abort", pass);
    second.removeEventListener("abort", end);
  };
}
