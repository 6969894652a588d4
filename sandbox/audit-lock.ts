import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

/** Held until `release`, or until the process ends, however it does. */
export type AuditLock = { release: () => void };

/**
 * Takes the lock of a session's log, or tells that somebody holds it, in this process or another. It is a
 * database's, since Node has no lock of its own that a killed process gives back. Throws what the system says.
 */
export function takeAuditLock(file: string): AuditLock | "held" {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    database.exec("BEGIN EXCLUSIVE");
    const held = database;
    return { release: () => held.close() };
  } catch (error) {
    database?.close();
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return "held";
    throw error;
  }
}
