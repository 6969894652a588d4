import { createHash } from "node:crypto";
import { lstatSync, readdirSync, type BigIntStats } from "node:fs";
import { basename, join } from "node:path";
import type { WorkspacePlan } from "./plan.ts";
import { readPlainFile } from "./plain-file.ts";

/** One path as it stood when the box started. `digest` is null where content does not matter. */
type Snapped = { path: string; identity: string; digest: string | null };
export type Snapshot = readonly Snapped[];

const MAX_ENTRIES = 2000;
const MAX_BYTES = 1024 * 1024;

/** Notes device and inode of every protected path and of what holds it, and the content of the protected ones. */
export function takeSnapshot({ guarded, held, roots }: Pick<WorkspacePlan, "guarded" | "held" | "roots">): Snapshot {
  const watched = guarded.filter((guard) => guard.watched);
  const holders = [...roots.map(({ path }) => path), ...held].filter((path) => watched.some((guard) => guard.path.startsWith(`${path}/`)));
  return [
    ...holders.map((path) => ({ path, identity: identify(path), digest: null })),
    // The configuration is the host's to change at any time, and trust looks at every change.
    ...watched.map(({ path }) => ({ path, identity: identify(path), digest: basename(path) === ".agentbox" ? null : digestPath(path) })),
  ];
}

/**
 * Finds the first path that is no longer the one that was mounted. A mount follows the old inode, so the
 * box sees the new one unprotected, or nothing, where it could make its own.
 */
export function findReplaced(snapshot: Snapshot): string | null {
  return snapshot.find(({ path, identity }) => identify(path) !== identity)?.path ?? null;
}

/** Lists the protected paths that are not what they were: replaced, or with other content. */
export function listChanged(snapshot: Snapshot): string[] {
  return snapshot
    .filter(({ path, identity, digest }) => identify(path) !== identity || (digest !== null && digestPath(path) !== digest))
    .map(({ path }) => path);
}

/** An inode that is mounted somewhere is not freed, so its number tells for sure. */
function identify(path: string): string {
  const stat = look(path);
  return stat === null ? "missing" : `${stat.dev}:${stat.ino}:${stat.mode & 0o170000n}`;
}

function digestPath(path: string): string {
  const hash = createHash("sha256");
  let left = MAX_ENTRIES;
  const add = (current: string): void => {
    const stat = look(current);
    hash.update(`${current}\0${stat === null ? "missing" : `${stat.mode}:${stat.size}`}\0`);
    if (stat === null || left <= 0) return;
    left -= 1;
    if (stat.isFile()) hash.update(stat.size <= MAX_BYTES ? readContent(current) : String(stat.mtimeNs));
    if (stat.isDirectory()) for (const name of listNames(current)) add(join(current, name));
  };
  add(path);
  return hash.digest("hex");
}

function readContent(path: string): Buffer | string {
  const found = readPlainFile(path, MAX_BYTES);
  return "flaw" in found ? found.detail : found.content;
}

function listNames(path: string): string[] {
  try {
    return readdirSync(path).toSorted();
  } catch {
    return [];
  }
}

function look(path: string): BigIntStats | null {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}
