import type { Mount } from "../mount.ts";
import { claimMountPoints, releaseMountPoints, type MountPoint } from "./mount-points.ts";
import type { WorkspacePlan } from "./plan.ts";
import { listChanged, takeSnapshot } from "./snapshot.ts";
import { watchSnapshot } from "./watch.ts";

/** A workspace whose mount points stand and whose protected paths are known as they were. */
export type OpenWorkspace = {
  /** What to mount: the plan's mounts without those that no file system can carry. */
  mounts: Mount[];
  /** Watches the host's side from now on; `onReplaced` is called once, when the box has to end. Returns how to stop. */
  watch(onReplaced: (reason: string) => void): () => void;
  /** Compares with the start, removes the mount points that nobody uses, and tells what changed. Call it when the container is gone. */
  close(): string[];
};

type OpenQuery = { plan: WorkspacePlan; stateDir: string; session: string };

/** Makes ready on the host what the plan mounts. Throws a `ConfigError` and leaves nothing behind when it cannot. */
export function openWorkspace({ plan, stateDir, session }: OpenQuery): OpenWorkspace {
  const { impossible } = claimMountPoints({ stateDir, session, points: listPoints(plan) });
  const guarded = plan.guarded.filter(({ path }) => !impossible.includes(path));
  const snapshot = takeSnapshot({ ...plan, guarded });
  return {
    mounts: plan.mounts.filter(({ target }) => !impossible.includes(target)),
    watch: (onReplaced) => watchSnapshot(snapshot, onReplaced),
    close() {
      const changed = listChanged(snapshot);
      releaseMountPoints({ stateDir, session });
      return changed.map((path) => `${JSON.stringify(path)} changed while the box ran, which can see it read-only: look at it if that was not you`);
    },
  };
}

/** Lists every mount target below the roots, outer ones first; those that stand are claimed too, since another session may have made them. */
function listPoints({ held, guarded }: WorkspacePlan): MountPoint[] {
  const holders = held.map((path) => ({ path, kind: "directory", placeholder: "" }) as const);
  const points: MountPoint[] = [...holders, ...guarded];
  return points.toSorted((a, b) => a.path.split("/").length - b.path.split("/").length);
}
