import { close, constants, fsync, openSync } from "node:fs";
import { promisify } from "node:util";
import { asFileError } from "./errors.ts";
import type { Located } from "./located.ts";

/** More than these at once, and writers wait: each one holds a handle. */
const MOST_AT_ONCE = 32;

const sync = promisify(fsync);
const closeFile = promisify(close);

/**
 * Brings changed names to the disk behind the operation's back. A file is old or new without that; what it adds
 * is that after a loss of power the new one stays, and waiting for it would cost a write a second turn of the disk.
 */
export class DirectorySyncs {
  readonly #running = new Set<Promise<void>>();
  #failure: unknown;

  /** Begins to sync the directory of what was located; waits only where too many are under way. */
  async begin(located: Located): Promise<void> {
    const { path } = located;
    const fd = this.#open(located);
    if (fd === undefined) return;
    const run = syncAndClose(fd)
      .catch((error: unknown) => {
        this.#failure ??= asFileError(error, path);
      })
      .finally(() => this.#running.delete(run));
    this.#running.add(run);
    if (this.#running.size > MOST_AT_ONCE) await run;
  }

  /** The operation has happened: what fails from here on is not its failure. A directory may be writable without being readable. */
  #open(located: Located): number | undefined {
    try {
      return openSync(located.sibling("."), constants.O_RDONLY | constants.O_DIRECTORY);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EACCES")) this.#failure ??= asFileError(error, located.path);
      return undefined;
    }
  }

  /** Waits until everything is on the disk. Throws FileError where something did not get there. */
  async settle(): Promise<void> {
    await Promise.all(this.#running);
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

async function syncAndClose(fd: number): Promise<void> {
  try {
    await sync(fd);
  } catch (error) {
    // Some file systems have no such call for directories.
    if (!(error instanceof Error && "code" in error && error.code === "EINVAL")) throw error;
  } finally {
    await closeFile(fd);
  }
}
