import { removeContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { listMountPointSessions, releaseMountPoints } from "../workspace/mount-points.ts";
import { isGone } from "./owner.ts";
import { closeSession, readSessions, sweepBroken } from "./session.ts";

/** Removes what sessions left whose command line was killed: container, mount points, files. Returns their ids. */
export async function sweepSessions(agentboxHome: string, engine: Engine): Promise<string[]> {
  // Read before the sessions: each session is there before it claims mount points.
  const claimants = listMountPointSessions(agentboxHome);
  const sessions = await readSessions(agentboxHome);
  const known = new Set(sessions.map(({ record }) => record.id));
  // A session directory that was deleted by hand leaves claims that nobody else would ever release.
  for (const session of claimants.filter((id) => !known.has(id))) releaseMountPoints({ stateDir: agentboxHome, session });
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
  return [...swept.flat(), ...(await sweepBroken(agentboxHome))];
}
