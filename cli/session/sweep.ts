import { removeContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { releaseMountPoints } from "../workspace/mount-points.ts";
import { isGone } from "./owner.ts";
import { closeSession, readSessions } from "./session.ts";

/** Removes what sessions left whose command line was killed: container, mount points, files. Returns their ids. */
export async function sweepSessions(agentboxHome: string, engine: Engine): Promise<string[]> {
  const sessions = await readSessions(agentboxHome);
  const swept = await Promise.all(
    sessions.map(async ({ directory, record }) => {
      if (record.engine !== engine.kind || !(await isGone(record.owner))) return [];
      // While the container stands, its mounts hold the mount points; the next start tries again.
      if (!(await removeContainer(engine, record.container))) return [];
      releaseMountPoints({ stateDir: agentboxHome, session: record.id });
      await closeSession(directory);
      return [record.id];
    }),
  );
  return swept.flat();
}
