import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { UsageError } from "../../policy/errors.ts";
import { findFileHolder } from "./holder.ts";

const FILE = "log.lock";

/**
 * Makes sure that no other process writes the log of a directory: two would number their lines alike. The lock is
 * a database's, since that ends with the process that holds it, also when it is killed. Returns how to give it back.
 */
export function lockLog(directory: string): () => void {
  const file = join(directory, FILE);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    database.exec("BEGIN EXCLUSIVE");
    const held = database;
    return () => held.close();
  } catch (error) {
    database?.close();
    const holder = findFileHolder(file);
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      { what: holder === undefined ? `another proxy writes its log into ${directory}, or nobody can (${why})` : `${holder} writes its log into ${directory} already`, expected: "a log of its own for each proxy", fix: "end the other one, or name another directory: --log DIR" },
      { cause: error },
    );
  }
}
