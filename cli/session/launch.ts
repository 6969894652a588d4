import { rm } from "node:fs/promises";
import type { BootEvent } from "../../policy/boot-event.ts";
import { EngineError, FirewallError } from "../../policy/errors.ts";
import { attachTerminal } from "../engine/attach.ts";
import { readContainerState, startContainer, waitForContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import type { Screen } from "../ui/screen.ts";
import type { Session } from "./session.ts";
import { followProgress } from "./progress.ts";
import type { VisibleDirectory } from "./visible-directory.ts";

export type Launch = {
  engine: Engine;
  session: Session;
  screen: Screen;
  signal: AbortSignal;
  /** What a holder says to be in force; the agent's gate, which knows no policy, has proved it when it is ready. */
  inForce: string | undefined;
};

/** The box said itself why it did not start; the screen shows it already. */
export class LaunchFailure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("the box did not start");
    this.name = "LaunchFailure";
    this.exitCode = exitCode;
  }
}

/**
 * Starts a created box while the launch screen shows its steps, then hands the terminal over to the
 * agent and returns when the box has ended.
 *
 * The box starts with nobody attached: had the engine's client the terminal from the beginning, two
 * programs would draw on it and read its keys. The agent itself waits until `progress` is removed.
 */
export async function launchOnTerminal({ engine, session, screen, signal, inForce }: Launch): Promise<void> {
  const { container } = session.record;
  signal.throwIfAborted();
  await startContainer(engine, container);
  signal.throwIfAborted();
  const report = (event: BootEvent): void => screen.report(event.event === "ready" && inForce !== undefined ? { ...event, text: inForce } : event);
  await awaitReady({ engine, container, visible: session.box, signal, report });
  await screen.close();
  signal.throwIfAborted();
  await attachTerminal(engine, container, async () => {
    // A box that is to end gets no agent; its end also ends the engine's client, which has the terminal.
    if (!signal.aborted) await rm(session.box.launch, { recursive: true, force: true });
  });
}

export type Awaiting = { engine: Engine; container: string; visible: VisibleDirectory; signal: AbortSignal; report: (event: BootEvent) => void };

/** Follows the start of a container until it is ready, and returns its last event. Throws LaunchFailure when the container itself said why it is not. */
export async function awaitReady({ engine, container, visible, signal, report }: Awaiting): Promise<BootEvent> {
  const ended = new AbortController();
  const over = AbortSignal.any([ended.signal, signal]);
  const watch = waitForContainer(engine, container, over).then(() => ended.abort());
  try {
    const event = await followProgress({ file: visible.progress, report, signal: over });
    signal.throwIfAborted();
    if (event?.event === "failed") throw new LaunchFailure(event.exitCode);
    if (event === undefined) throw await explainSilentEnd(engine, container);
    return event;
  } finally {
    ended.abort();
    await watch;
  }
}

async function explainSilentEnd(engine: Engine, container: string): Promise<Error> {
  const state = await readContainerState(engine, container);
  if (state?.outOfMemory === true) return new EngineError({ what: "the box ran out of memory while it started", fix: "give the engine, or the box (`[box] memory`), more memory" });
  return new FirewallError({
    what: `the box ended while it started (exit code ${state?.exitCode ?? "unknown"}${state?.error ? `, ${state.error}` : ""}) and gave no reason`,
    expected: "a ready line",
    fix: "run `agentbox run -- true </dev/null`, which prints all that the entrypoint says; `agentbox --rebuild` renews the image",
  });
}
