import { access } from "node:fs/promises";
import { removeContainer } from "../engine/containers.ts";
import { detectEngine } from "../engine/detect.ts";
import type { Engine, EngineKind } from "../engine/engine.ts";
import { listLabelled } from "../engine/labels.ts";
import { listBuiltImages, removeImage } from "../engine/images.ts";
import { listProjectVolumes, removeVolume } from "../engine/volumes.ts";
import type { Host } from "../host.ts";
import { nameImage } from "../image/ensure-image.ts";
import { readImageSettings } from "../image/settings.ts";
import { isGone, parseOwner } from "../session/owner.ts";
import { chooseUser } from "../session/prepare.ts";
import { sweepSessions } from "../session/sweep.ts";
import { readSite } from "./site.ts";

/** Removes what is no longer needed and returns a line about each kind of it. Running boxes are left alone. */
export async function cleanUp(host: Host, requested: EngineKind | undefined): Promise<string[]> {
  const engine = await detectEngine({ requested, env: host.env });
  const sessions = await sweepSessions(host.agentboxHome, engine);
  const containers = await removeStrays(engine);
  const images = await removeSuperseded(host, engine);
  const volumes = await removeOrphans(engine);
  return [
    describe(sessions.length, "killed session", "cleared"),
    describe(containers, "container without a session", "removed"),
    describe(images, "superseded image", "removed"),
    describe(volumes, "volume of a project that is gone", "removed"),
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

/** State of a project goes when its directory has gone. */
async function removeOrphans(engine: Engine): Promise<number> {
  let removed = 0;
  for (const { name, project } of await listProjectVolumes(engine)) {
    const present = await access(project).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
    );
    if (!present && (await removeVolume(engine, name))) removed += 1;
  }
  return removed;
}

function describe(count: number, what: string, done: string): string {
  if (count === 0) return `no ${what}`;
  return count === 1 ? `1 ${what} ${done}` : `${count} × ${what} ${done}`;
}
