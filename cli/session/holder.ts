import { setTimeout as sleep } from "node:timers/promises";
import { readContainerState, waitForContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";

const pauseMs = 500;

/**
 * Waits until a holder no longer runs and returns how it ended, or until `signal`. One that somebody starts
 * again has a namespace without rules; the agent's container is not in that one and is ended all the same.
 */
export async function awaitHolderEnd(engine: Engine, holder: string, signal: AbortSignal): Promise<string> {
  while (!signal.aborted) {
    const exitCode = await waitForContainer(engine, holder, signal).catch(() => undefined);
    if (exitCode !== undefined) return `ended with ${exitCode}`;
    if (signal.aborted) break;
    // The engine's client may end early, when the engine is restarted for one.
    const state = await readContainerState(engine, holder).catch(() => undefined);
    if (state !== undefined && state.status !== "running") return `is ${state.status}`;
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }
  return "was no longer watched";
}
