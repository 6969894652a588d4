import { removeContainer } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import { listMountPointSessions, releaseMountPoints } from "../workspace/mount-points.ts";
import { isGone } from "./owner.ts";
import { closeSession, sweepBroken } from "./session.ts";
import { expireSessions } from "./retention.ts";
import { readSessions, type SessionRecord } from "./session-record.ts";

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
      if (record.ended !== null || record.engine !== engine.kind || !(await isGone(record.owner))) return [];
      // While a container stands, its mounts hold the mount points; the next start tries again.
      if (!(await removeContainers(engine, record))) return [];
      releaseMountPoints({ stateDir: agentboxHome, session: record.id });
      await closeSession({ directory, record }, null);
      return [record.id];
    }),
  );
  await expireSessions(agentboxHome, Date.now());
  return [...swept.flat(), ...(await sweepBroken(agentboxHome))];
}

/**
 * Removes the containers of a session; true when they are gone. The agent's goes first: it must never be
 * left alone in a namespace whose keeper has gone.
 */
export async function removeContainers(engine: Engine, { container, holder }: Pick<SessionRecord, "container" | "holder">): Promise<boolean> {
  for (const name of [container, ...(holder === null ? [] : [holder])]) {
    if (!(await removeContainer(engine, name).catch(() => false))) return false;
  }
  return true;
}
