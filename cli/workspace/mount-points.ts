import { lstatSync, mkdirSync, rmdirSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError, type Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { makeInPlace } from "./in-place.ts";
import { openMountPointRecord, type MountPointRecord } from "./mount-point-record.ts";
import { errorCode, isWithin } from "./path-fact.ts";
import { readPlainFile } from "./plain-file.ts";

/** A path that must exist as the target of a mount; `placeholder` is what a file made for that holds. */
export type MountPoint = { path: string; kind: "file" | "directory"; placeholder: string };

type ClaimQuery = { stateDir: string; session: string; points: readonly MountPoint[] };

/**
 * Makes the mount points that are missing, outer ones first, and records who uses them: sessions of one
 * project share them, and a mount point that is removed under a running box takes its protection away.
 * Returns the paths that it made, and those that cannot exist because their file system is read-only:
 * nobody can plant anything there.
 *
 * A path that cannot be made is a `ConfigError`; whatever was made for this session is removed again.
 */
export function claimMountPoints({ stateDir, session, points }: ClaimQuery): { impossible: string[]; made: string[] } {
  const record = openMountPointRecord(stateDir);
  try {
    const { complaints, impossible, made } = record.exclusively(() => claimAll(record, { session, points }));
    if (complaints.length === 0) return { impossible, made };
    record.exclusively(() => releaseAll(record, session));
    throw new ConfigError(complaints);
  } finally {
    record.close();
  }
}

/** Gives a session's mount points up and removes those that no other session uses and that are still as they were made. */
export function releaseMountPoints({ stateDir, session }: { stateDir: string; session: string }): void {
  const record = openMountPointRecord(stateDir);
  try {
    record.exclusively(() => releaseAll(record, session));
  } finally {
    record.close();
  }
}

/** Lists the sessions that hold mount points, so that those of dead ones can be released. */
export function listMountPointSessions(stateDir: string): string[] {
  const record = openMountPointRecord(stateDir);
  try {
    return record.sessions();
  } finally {
    record.close();
  }
}

function claimAll(record: MountPointRecord, { session, points }: Omit<ClaimQuery, "stateDir">): { complaints: Complaint[]; impossible: string[]; made: string[] } {
  const complaints: Complaint[] = [];
  const impossible: string[] = [];
  const made: string[] = [];
  for (const point of points) {
    if (impossible.some((path) => isWithin(point.path, path))) {
      impossible.push(point.path);
      continue;
    }
    try {
      const known = record.find(point.path);
      const inode = readInode(point.path);
      if (inode === null) {
        record.add(point, makePoint(point));
        made.push(point.path);
      } else if (known !== null && known.inode !== inode) {
        // Somebody replaced what was made: it is the user's now, and stays.
        record.forget(point.path);
      }
      record.claim(point.path, session);
    } catch (error) {
      if (isOutOfReach(error, point.path)) impossible.push(point.path);
      else complaints.push(describeFailure(point, error));
    }
  }
  return { complaints, impossible, made };
}

function releaseAll(record: MountPointRecord, session: string): void {
  for (const { inode, ...point } of record.release(session)) {
    if (readInode(point.path) === inode) removePoint(point);
    record.forget(point.path);
  }
}

function makePoint({ path, kind, placeholder }: MountPoint): string {
  makeInPlace(path, (here) => {
    if (kind === "directory") mkdirSync(here, { mode: 0o755 });
    else writeFileSync(here, placeholder, { flag: "wx", mode: 0o644 });
  });
  return readInode(path) ?? "";
}

/** Removes a mount point unless something was put into it meanwhile. */
function removePoint({ path, kind, placeholder }: MountPoint): void {
  try {
    if (kind === "directory") rmdirSync(path);
    else if (holds(path, placeholder)) unlinkSync(path);
  } catch (error) {
    const code = errorCode(error);
    if (!["ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EISDIR"].includes(code)) throw error;
  }
}

function holds(path: string, placeholder: string): boolean {
  const found = readPlainFile(path, placeholder.length);
  return "content" in found && found.content.toString("utf8") === placeholder;
}

function readInode(path: string): string | null {
  const stat = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
}

/** The agent has the user's ids: what neither may create, now or after a chmod, it cannot plant. */
function isOutOfReach(error: unknown, path: string): boolean {
  const code = errorCode(error);
  if (code === "EROFS") return true;
  if (code !== "EACCES") return false;
  const parent = lstatSync(dirname(path), { throwIfNoEntry: false });
  return parent !== undefined && parent.uid !== process.getuid?.();
}

function describeFailure({ path, kind }: MountPoint, error: unknown): Complaint {
  return {
    what: `cannot make the ${kind} ${quotePath(path)}, which keeps the agent from making one (${errorCode(error)})`,
    expected: "a directory that you may write",
    fix: "correct the permissions of the directory that holds it",
  };
}
