import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { ConfigError } from "../../policy/errors.ts";
import type { MountPoint } from "./mount-points.ts";
import { errorCode } from "./path-fact.ts";

const FILE = "mount-points.db";
const WAIT_MS = 5000;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS point (path TEXT PRIMARY KEY, kind TEXT NOT NULL, placeholder TEXT NOT NULL, inode TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS claim (path TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (path, session)) STRICT;
`;
const pointSchema = z.object({ path: z.string(), kind: z.enum(["file", "directory"]), placeholder: z.string(), inode: z.string() });

/** A mount point as made, with the device and inode it got. */
type MadePoint = MountPoint & { inode: string };

/** Who uses which mount point. A claim counts for every path, whoever made it; points are only what we made. */
export type MountPointRecord = {
  /** Runs `work` while no other process reads or writes the record; undone when it throws. */
  exclusively<Value>(work: () => Value): Value;
  find(path: string): MadePoint | null;
  add(point: MountPoint, inode: string): void;
  claim(path: string, session: string): void;
  /** Drops a session's claims; returns the points that are left without one, inner ones first. */
  release(session: string): MadePoint[];
  forget(path: string): void;
  sessions(): string[];
  close(): void;
};

/**
 * Opens the record in AgentBox's own directory. A database rather than a lock file: its lock ends with
 * the process that holds it, also when that is killed.
 */
export function openMountPointRecord(stateDir: string): MountPointRecord {
  const database = openDatabase(stateDir);
  const points = (sql: string, ...values: string[]) => z.array(pointSchema).parse(database.prepare(sql).all(...values));
  const run = (sql: string, ...values: string[]) => void database.prepare(sql).run(...values);
  return {
    exclusively(work) {
      database.exec("BEGIN IMMEDIATE");
      try {
        const value = work();
        database.exec("COMMIT");
        return value;
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    },
    find: (path) => points("SELECT * FROM point WHERE path = ?", path).at(0) ?? null,
    add: ({ path, kind, placeholder }, inode) => run("INSERT OR REPLACE INTO point VALUES (?, ?, ?, ?)", path, kind, placeholder, inode),
    claim: (path, session) => run("INSERT OR IGNORE INTO claim VALUES (?, ?)", path, session),
    release(session) {
      const orphans = points(
        `SELECT point.* FROM point JOIN claim USING (path) WHERE session = ?1
         AND NOT EXISTS (SELECT 1 FROM claim AS other WHERE other.path = point.path AND other.session <> ?1)
         ORDER BY length(path) DESC`,
        session,
      );
      run("DELETE FROM claim WHERE session = ?", session);
      return orphans;
    },
    forget: (path) => run("DELETE FROM point WHERE path = ?", path),
    sessions: () => z.array(z.object({ session: z.string() })).parse(database.prepare("SELECT DISTINCT session FROM claim ORDER BY session").all()).map((row) => row.session),
    close: () => database.close(),
  };
}

function openDatabase(stateDir: string): DatabaseSync {
  const file = join(stateDir, FILE);
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const database = new DatabaseSync(file, { timeout: WAIT_MS });
    database.exec(SCHEMA);
    return database;
  } catch (error) {
    throw new ConfigError(
      { what: `cannot open the record of mount points (${errorCode(error)})`, expected: "a database", fix: "correct its permissions, or remove it while no box runs", place: { file } },
      { cause: error },
    );
  }
}
