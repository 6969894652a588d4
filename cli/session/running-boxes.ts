import { readContainerState } from "../engine/containers.ts";
import type { Engine } from "../engine/engine.ts";
import type { Host } from "../host.ts";
import { readSessions, type SessionRecord } from "./session-record.ts";
import { describeVisible } from "./visible-directory.ts";

/** A firewalled box that runs now. */
export type RunningBox = {
  record: SessionRecord;
  /** The session's directory. */
  directory: string;
  /** The container whose keeper takes requests. */
  container: string;
  /** What the agent sees of its policy. */
  visible: string;
};

/** Finds the firewalled boxes of a project (its real path) that run now, the newest first; those of another engine are left out. */
export async function findRunningBoxes({ agentboxHome }: Pick<Host, "agentboxHome">, engine: Engine, project: string): Promise<RunningBox[]> {
  const sessions = await readSessions(agentboxHome);
  const found = await Promise.all(
    sessions.map(async ({ directory, record }) => {
      if (record.ended !== null || !record.firewall || record.project !== project || record.engine !== engine.kind) return [];
      const container = record.holder ?? record.container;
      if ((await readContainerState(engine, container))?.status !== "running") return [];
      return [{ record, directory, container, visible: describeVisible(directory, "box").directory }];
    }),
  );
  return found.flat();
}
