import type { MountedPath } from "../../policy/box-spec.ts";
import { FirewallError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { Mount } from "../mount.ts";
import { claimMountPoints, releaseMountPoints, type MountPoint } from "./mount-points.ts";
import { identifySources, requireUnchanged } from "./mount-sources.ts";
import { trackRepositories } from "./nested-repositories.ts";
import type { WorkspacePlan } from "./plan.ts";
import { listChanged, takeSnapshot } from "./snapshot.ts";
import { watchSnapshot } from "./watch.ts";

/** A workspace whose mount points stand and whose protected paths are known as they were. */
export type OpenWorkspace = {
  /** What to mount: the plan's mounts without those that no file system can carry. */
  mounts: Mount[];
  /** Which file each of the mounts has to be, when the box starts. */
  sources: MountedPath[];
  /** Watches the host's side from now on; `onReplaced` is called once, when the box has to end. Returns how to stop. */
  watch(onReplaced: (reason: string) => void): () => void;
  /** Compares with the start, removes the mount points that nobody uses, and tells what changed. Call it when the container is gone. */
  close(): string[];
};

type OpenQuery = {
  plan: WorkspacePlan;
  stateDir: string;
  session: string;
  /** What stood at the mounts' paths when the plan was made. */
  planned?: readonly MountedPath[];
};

/** Makes ready on the host what the plan mounts. Throws a `KnownError` and leaves nothing behind when it cannot. */
export function openWorkspace({ plan, stateDir, session, planned = [] }: OpenQuery): OpenWorkspace {
  const listRepositories = trackRepositories(plan);
  const { impossible, made } = claimMountPoints({ stateDir, session, points: listPoints(plan) });
  const mounts = plan.mounts.filter(({ target }) => !impossible.includes(target));
  let sources: MountedPath[];
  try {
    // A mount point of another session that ended since the plan was just made anew.
    sources = pinSources(mounts, planned.filter(({ target }) => !made.includes(target)));
  } catch (error) {
    releaseMountPoints({ stateDir, session });
    throw error;
  }
  const guarded = plan.guarded.filter(({ path }) => !impossible.includes(path));
  const snapshot = takeSnapshot({ ...plan, guarded });
  return {
    mounts,
    sources,
    watch: (onReplaced) => watchSnapshot(snapshot, onReplaced),
    close() {
      const changed = listChanged(snapshot);
      releaseMountPoints({ stateDir, session });
      const notices = changed.map((path) => `${quotePath(path)} changed while the box ran, which can see it read-only: look at it if that was not you`);
      return [...notices, ...listRepositories()];
    },
  };
}

/** Identifies all that is mounted, the mount points just made among it, after what the plan saw was found unchanged. */
function pinSources(mounts: readonly Mount[], planned: readonly MountedPath[]): MountedPath[] {
  requireUnchanged(planned);
  const sources = identifySources(mounts);
  const found = new Set(sources.map(({ target }) => target));
  const gone = mounts.filter(({ target }) => !found.has(target));
  if (gone.length === 0) return sources;
  throw new FirewallError(gone.map(({ target }) => ({ what: `${quotePath(target)} was removed between planning and start`, expected: "what the box mounts to stay in place while it starts", fix: "start again" })));
}

/** Lists every mount target below the roots, outer ones first; those that stand are claimed too, since another session may have made them. */
function listPoints({ held, guarded }: WorkspacePlan): MountPoint[] {
  const holders = held.map((path) => ({ path, kind: "directory", placeholder: "" }) as const);
  const points: MountPoint[] = [...holders, ...guarded];
  return points.toSorted((a, b) => a.path.split("/").length - b.path.split("/").length);
}
