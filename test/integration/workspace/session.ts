import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readWorkspace } from "../../../cli/workspace/facts.ts";
import { planWorkspace, type WorkspacePlan } from "../../../cli/workspace/plan.ts";
import { openWorkspace } from "../../../cli/workspace/workspace.ts";
import { git } from "./box.ts";

/** Makes a repository with one commit. */
export function makeRepository(path: string): void {
  mkdirSync(path, { recursive: true });
  git(path, "init", "-q");
  git(path, "commit", "-q", "--allow-empty", "-m", "x");
}

/** Makes what an agent would plant: a repository whose configuration names a command. */
export function plant(path: string, command = "false"): void {
  makeRepository(path);
  git(path, "config", "core.fsmonitor", command);
}

/** Plans a box for the directory `project` in `place`. */
export async function planProject(place: string): Promise<WorkspacePlan> {
  const home = join(place, "home");
  const facts = await readWorkspace({ cwd: join(place, "project"), addDirs: [], home, stateDir: join(place, "state"), installation: join(place, "agentbox"), env: {} });
  return planWorkspace({ facts, yesSecrets: false, writable: [] });
}

/** Lets a session last while the box does its work, and returns what its end tells. */
export async function hearAfter(place: string, work: () => void): Promise<string[]> {
  const plan = await planProject(place);
  await passTime();
  const workspace = openWorkspace({ plan, stateDir: join(place, "state"), session: "one" });
  await passTime();
  work();
  return workspace.close();
}

/** Lets the clock tick by which the kernel dates changes; it does so every few milliseconds. */
export async function passTime(): Promise<void> {
  await sleep(20);
}
