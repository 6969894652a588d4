import { setTimeout as sleep } from "node:timers/promises";
import { removeContainer, signalContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { stopTimeoutSeconds } from "../engine/security.ts";
import { Interrupted, type Interruption } from "./interruption.ts";

const REMOVAL_PAUSE_MS = 200;

/**
 * Removes a box at once, whatever its state, without time to end in: the agent could use it to write what
 * is no longer protected. Tries again until it is gone, or `over`.
 */
export async function removeUntilGone(engine: Engine, container: string, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    // Removal alone would let Podman ask the agent to end first; a box that does not run yet takes no signal.
    await signalContainer(engine, container, "SIGKILL").catch(() => undefined);
    if (await removeContainer(engine, container).catch(() => false)) return;
    await sleep(REMOVAL_PAUSE_MS);
  }
}

/**
 * Passes a signal on to the agent, which has as long to end as `docker stop` gives; a second signal, or
 * that time, ends it. Before the agent runs there is nothing to wait for.
 */
export function stopOnSignal(engine: Engine, container: string, { first, second }: Interruption, terminal: boolean): () => void {
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
