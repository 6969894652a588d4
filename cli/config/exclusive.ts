import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError } from "../../policy/errors.ts";
import { makePrivateDirectory } from "../session/home.ts";

const FILE = "policy.lock";
/** Longer than a box is waited for under the lock. */
const WAIT_MS = 60_000;
const POLL_MS = 20;
const SQLITE_BUSY = 5;

/**
 * Runs `action` while no other command line of this user changes a policy: of two at once neither may lose
 * the other's change. The lock is a database's, since that ends with the process that holds it, also when
 * it is killed. Throws ConfigError where the lock cannot be taken.
 */
export async function withPolicyLock<T>(agentboxHome: string, action: () => Promise<T>): Promise<T> {
  await makePrivateDirectory(agentboxHome);
  const database = await takeLock(join(agentboxHome, FILE));
  try {
    return await action();
  } finally {
    database.close();
  }
}

async function takeLock(file: string): Promise<DatabaseSync> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const taken = tryLock(file);
    if (taken instanceof DatabaseSync) return taken;
    if (!taken.busy || Date.now() > end) throw refuse(file, taken.cause);
    // The database's own wait would stop this process, which may hold the lock itself.
    await sleep(POLL_MS);
  }
}

function tryLock(file: string): DatabaseSync | { busy: boolean; cause: unknown } {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (cause) {
    database?.close();
    return { busy: cause instanceof Error && "errcode" in cause && cause.errcode === SQLITE_BUSY, cause };
  }
}

function refuse(file: string, cause: unknown): ConfigError {
  return new ConfigError(
    { what: `policies cannot be changed just now (${cause instanceof Error ? cause.message : String(cause)})`, expected: "a lock that is free, or becomes free soon", fix: "wait for other `agentbox policy` commands; if there are none, remove the file", place: { file } },
    { cause },
  );
}
