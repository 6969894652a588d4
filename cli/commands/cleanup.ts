import { lstat, readdir } from "node:fs/promises";
import path from "node:path";
import { removeContainer } from "../engine/containers.ts";
import { detectEngine } from "../engine/detect.ts";
import type { Engine, EngineKind } from "../engine/engine.ts";
import { listLabelled } from "../engine/labels.ts";
import { listBuiltImages, removeImage } from "../engine/images.ts";
import { listProjectVolumes, type ProjectVolume, removeVolume } from "../engine/volumes.ts";
import type { Host } from "../host.ts";
import { nameImage } from "../image/ensure-image.ts";
import { readImageSettings } from "../image/settings.ts";
import { isGone, parseOwner } from "../session/owner.ts";
import { chooseUser } from "../session/box-user.ts";
import { sweepSessions } from "../session/sweep.ts";
import { readSite } from "./site.ts";

/** Removes what is no longer needed and returns a line about each kind of it. Running boxes are left alone. */
export async function cleanUp(host: Host, requested: EngineKind | undefined): Promise<string[]> {
  const warnings: string[] = [];
  const engine = await detectEngine({ requested, env: host.env, warn: (text) => warnings.push(`warning: ${text}`) });
  const sessions = await sweepSessions(host.agentboxHome, engine);
  const containers = await removeStrays(engine);
  const images = await removeSuperseded(host, engine);
  const volumes = await removeOrphans(engine, host.agentboxHome);
  return [
    ...warnings,
    describe(sessions.length, "killed session", "cleared"),
    describe(containers, "container without a session", "removed"),
    describe(images, "superseded image", "removed"),
    describe(volumes.length, "volume of a project that is gone", "removed"),
    ...volumes.map(({ name, project }) => `  ${name} of ${project}`),
  ];
}

/** A container whose session directory is gone, but whose label says that its command line is gone too. */
async function removeStrays(engine: Engine): Promise<number> {
  const boxes = await listLabelled(engine, "container", "agentbox.session");
  const removed = await Promise.all(
    boxes.map(async ({ name, labels }) => {
      const owner = parseOwner(labels["agentbox.owner"] ?? "");
      return owner !== undefined && (await isGone(owner)) && (await removeContainer(engine, name));
    }),
  );
  return removed.filter(Boolean).length;
}

async function removeSuperseded(host: Host, engine: Engine): Promise<number> {
  const settings = await readImageSettings(host.agentboxHome);
  // Nothing remembered: no start has ever got as far as an image.
  if (settings === undefined) return 0;
  const { certificates } = readSite(host, settings.caFile);
  const user = chooseUser(host, engine);
  const { hash } = await nameImage({ root: host.root, settings, certificates, user });
  const superseded = (await listBuiltImages(engine)).filter((image) => image.home === host.agentboxHome && (image.hash !== hash || image.tags.length === 0));
  let removed = 0;
  // One after the other: images share layers, and the engine refuses what another removal still holds.
  for (const image of superseded) if (await removeImage(engine, image)) removed += 1;
  return removed;
}

/** State of a project goes when its directory has gone. Returns the volumes that were removed. */
async function removeOrphans(engine: Engine, agentboxHome: string): Promise<ProjectVolume[]> {
  const removed: ProjectVolume[] = [];
  for (const volume of await listProjectVolumes(engine, agentboxHome)) {
    if ((await isDeleted(volume.project)) && (await removeVolume(engine, volume.name))) removed.push(volume);
  }
  return removed;
}

/**
 * Tells whether a project was deleted, not merely out of sight: something must lie where it lay. A directory
 * above it that is missing or empty may be the mount point of a disk that is away.
 */
async function isDeleted(project: string): Promise<boolean> {
  const beside = await readdir(path.dirname(project)).catch(() => []);
  if (beside.length === 0) return false;
  return await lstat(project).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}

function describe(count: number, what: string, done: string): string {
  if (count === 0) return `no ${what}`;
  return count === 1 ? `1 ${what} ${done}` : `${count} × ${what} ${done}`;
}
