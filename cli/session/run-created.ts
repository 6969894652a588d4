import { EngineError, FirewallError } from "../../policy/errors.ts";
import { endedByReader, runAttached } from "../engine/attach.ts";
import { brokenPipeCode } from "../engine/client.ts";
import { readContainerState } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { explainContainerFailure } from "../engine/failure.ts";
import type { OpenWorkspace } from "../workspace/workspace.ts";
import { relayCallback } from "./callback.ts";
import { sendControl } from "./control.ts";
import { removeUntilGone, stopOnSignal } from "./end-box.ts";
import type { Holding } from "./hold-box.ts";
import { awaitHolderEnd } from "./holder.ts";
import { watchKeeper } from "./keeper-watch.ts";
import { launchOnTerminal } from "./launch.ts";
import { followConfig } from "./reload-policy.ts";
import type { Session } from "./session.ts";

export type Created = {
  session: Session;
  workspace: OpenWorkspace;
  /** What a holder said to be in force. */
  inForce: string | undefined;
};

/** Runs the agent's container, made but not started, to its end, and returns the agent's exit code. */
export async function runCreated({ host, screen, request, planned, interruption }: Holding, { session, workspace, inForce }: Created): Promise<number> {
  const { engine, boxUser } = planned;
  const { container, holder } = session.record;
  let clientCode: number | null = null;
  const doom = new AbortController();
  const over = new AbortController();
  const end = (what: string, expected: string): void => {
    if (over.signal.aborted) return;
    doom.abort(new FirewallError({ what, expected, fix: "start again" }));
    void removeUntilGone(engine, container, over.signal);
  };
  const unwatch = workspace.watch((reason) => end(reason, "protected files that stay in place while a box runs"));
  const holderWatch = holder === null ? undefined : awaitHolderEnd(engine, holder, over.signal).then((how) => end(`${holder}, which keeps the firewall, ${how}`, "a firewall container that runs as long as its box"));
  const unwatchKeeper = followKeeper(planned, session, (reason) => end(`the keeper of the box is gone: ${reason}`, "a keeper that serves as long as its box runs"));
  const signal = AbortSignal.any([doom.signal, interruption.first]);
  const { callback } = request;
  const endRelay = callback?.onLoopback === true ? await relayCallback({ engine, container, port: callback.port, user: boxUser, joined: holder !== null }) : () => {};
  const unfollow = followConfig({ host, request, planned, session });
  const endStopping = stopOnSignal(engine, container, interruption, host.terminal);
  try {
    signal.throwIfAborted();
    if (host.terminal) await launchOnTerminal({ engine, session, screen, signal, inForce });
    else clientCode = await runAttached(engine, container, true);
  } catch (error) {
    // A box that is gone fails in many ways; this is the cause.
    doom.signal.throwIfAborted();
    throw error;
  } finally {
    over.abort();
    endStopping();
    endRelay();
    unwatch();
    await Promise.all([holderWatch, unwatchKeeper(), unfollow()]);
  }
  signal.throwIfAborted();
  return await readExitCode(engine, container, clientCode);
}

/** Does nothing for a box that has no keeper. Returns how to stop. */
function followKeeper({ network, engine }: Holding["planned"], { record, log }: Session, onGone: (reason: string) => void): () => Promise<void> {
  if (!network.firewall || network.mode === "none") return async () => {};
  const { container, holder } = record;
  const ask = async (): Promise<string | undefined> => {
    try {
      await sendControl(engine, { container: holder ?? container }, { op: "status" });
      return undefined;
    } catch (error) {
      // A box that ends or stands still has no keeper to answer, and an engine that tells nothing proves nothing.
      if ((await readContainerState(engine, container).catch(() => undefined))?.status !== "running") return undefined;
      return error instanceof EngineError ? error.complaints.map(({ what }) => what).join("; ") : String(error);
    }
  };
  return watchKeeper({ log, ready: holder !== null, ask, onGone });
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
