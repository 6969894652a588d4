import type { Mount } from "../mount.ts";
import type { Engine } from "./engine.ts";
import { listLabelled } from "./labels.ts";

const projectLabel = "agentbox.project";
const homeLabel = "agentbox.home";

/** Whom a volume serves: a project, in the hands of the user who keeps this `~/.agentbox`. */
export type VolumeOwner = { project: string; home: string };

/** Returns the labels of a volume. One that all projects share, such as a login, belongs to none of them. */
export function labelVolume(name: string, { project, home }: VolumeOwner): string[] {
  return name.startsWith("agentbox-login-") ? [] : [`${projectLabel}=${project}`, `${homeLabel}=${home}`];
}

/** Makes the volumes of a box where the engine cannot label them while it mounts them. */
export async function labelVolumes(engine: Engine, mounts: readonly Mount[], owner: VolumeOwner): Promise<void> {
  if (engine.kind === "docker") return;
  const names = mounts.flatMap((mount) => (mount.kind === "volume" ? [mount.name] : []));
  // One that is there already has its label; the engine's refusal says nothing new.
  await Promise.all(
    names.map((name) => engine.client.call(["volume", "create", ...labelVolume(name, owner).flatMap((label) => ["--label", label]), name])),
  );
}

export type ProjectVolume = { name: string; project: string };

/** Lists the volumes that belong to one project each and were made for this `~/.agentbox`; other users have theirs on the same engine. */
export async function listProjectVolumes(engine: Engine, home: string): Promise<ProjectVolume[]> {
  const volumes = await listLabelled(engine, "volume", projectLabel);
  return volumes.filter(({ labels }) => labels[homeLabel] === home).map(({ name, labels }) => ({ name, project: labels[projectLabel] ?? "" }));
}

/** Removes a volume; false when something still uses it. */
export async function removeVolume(engine: Engine, name: string): Promise<boolean> {
  const result = await engine.client.call(["volume", "rm", name], { timeoutMs: 30_000 });
  return result.exitCode === 0;
}
