import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { EngineError } from "../../policy/errors.ts";
import { renderCreateArgv } from "./container-argv.ts";
import type { ContainerPlan } from "./container-plan.ts";
import type { Engine } from "./engine.ts";
import { explainContainerFailure } from "./failure.ts";

/** A box runs for as long as its agent does. */
const noLimit = 0;

/** How a container stands. `exitCode` counts only when it no longer runs. */
export type ContainerState = { status: string; exitCode: number; error: string; outOfMemory: boolean };

/** Creates a container without starting it. Never cut short: a half-heard request may still create one. */
export async function createContainer(engine: Engine, plan: ContainerPlan): Promise<void> {
  const result = await engine.client.call(renderCreateArgv(plan, engine), { timeoutMs: 60_000 });
  if (result.exitCode !== 0) throw explainContainerFailure(engine, result.stderr);
}

/** Starts a container and returns at once. */
export async function startContainer(engine: Engine, name: string): Promise<void> {
  const result = await engine.client.call(["start", name], { timeoutMs: 60_000 });
  if (result.exitCode !== 0) throw explainContainerFailure(engine, result.stderr);
}

/** Waits until a container has ended; the result is its exit code, undefined when `signal` came first. */
export async function waitForContainer(engine: Engine, name: string, signal: AbortSignal): Promise<number | undefined> {
  const result = await engine.client.call(["wait", name], { timeoutMs: noLimit, signal });
  return result.exitCode === 0 ? Number(result.stdout.trim()) : undefined;
}

/** Sends a signal to the box's agent; no error when the box has ended meanwhile. */
export async function signalContainer(engine: Engine, name: string, signal: string): Promise<void> {
  await engine.client.call(["kill", "--signal", signal, name]);
}

const removalPollMs = 100;
const removalTries = 100;

/**
 * Removes a container whatever its state, with its anonymous volumes. True when it is gone. Two may ask at
 * once (a second signal, the sweep of another start); the engine refuses the later one while it is at it.
 */
export async function removeContainer(engine: Engine, name: string): Promise<boolean> {
  for (let tries = 0; tries < removalTries; tries += 1) {
    const result = await engine.client.call(["rm", "--force", "--volumes", name], { timeoutMs: 30_000 });
    if (!/already in progress/i.test(result.stderr)) return result.exitCode === 0 || /no such container|no container with name/i.test(result.stderr);
    await sleep(removalPollMs);
  }
  return false;
}

const stateSchema = z.object({
  Status: z.string(),
  ExitCode: z.int(),
  Error: z.string().optional(),
  OOMKilled: z.boolean().optional(),
});

/** Reads a container's state; undefined when there is no such container. */
export async function readContainerState(engine: Engine, name: string): Promise<ContainerState | undefined> {
  const result = await engine.client.call(["container", "inspect", "--format", "{{json .State}}", name]);
  if (result.exitCode !== 0) {
    if (/no such container/i.test(result.stderr)) return undefined;
    throw new EngineError({ what: `${engine.kind} cannot tell the state of ${name}: ${result.stderr.trim()}`, fix: `see \`${engine.kind} ps -a\`` });
  }
  const state = stateSchema.parse(JSON.parse(result.stdout));
  return { status: state.Status, exitCode: state.ExitCode, error: state.Error ?? "", outOfMemory: state.OOMKilled ?? false };
}
