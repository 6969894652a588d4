import { close, constants, fsync, openSync } from "node:fs";
import { promisify } from "node:util";
import { asFileError } from "./errors.ts";
import type { Located } from "./located.ts";

/** Directories that wait at most; each one holds a handle. */
const MOST_WAITING = 32;

/** How long a changed name waits. At once would be dear: on ext4 the next write's own sync would wait for this one's. */
const WAIT_MS = 1000;

const sync = promisify(fsync);
const closeFile = promisify(close);

/**
 * Brings changed names to the disk behind the operation's back, once a second a directory. A file is old or new without that;
 * what it adds is that after a loss of power the new one stays, and waiting for it would cost a write a second turn of the disk.
 */
export class DirectorySyncs {
  /** Handles of directories by their path. */
  readonly #waiting = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #failure: unknown;

  /** Notes that names in the directory of what was located have changed. */
  note(located: Located): void {
    const { path } = located.parent;
    if (this.#waiting.has(path)) return;
    const fd = this.#open(located);
    if (fd === undefined) return;
    this.#waiting.set(path, fd);
    if (this.#waiting.size >= MOST_WAITING) this.#flush();
    // A process that ends meanwhile loses nothing: the kernel has the names.
    else this.#timer ??= setTimeout(() => this.#flush(), WAIT_MS).unref();
  }

  /** Waits until everything is on the disk. Throws FileError where something did not get there. */
  async settle(): Promise<void> {
    this.#flush();
    await this.#running;
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = [...this.#waiting];
    this.#waiting.clear();
    this.#running = Promise.all([this.#running, ...batch.map(([path, fd]) => this.#sync(path, fd))]).then(() => undefined);
  }

  async #sync(path: string, fd: number): Promise<void> {
    try {
      await syncAndClose(fd);
    } catch (error) {
      this.#failure ??= asFileError(error, path);
    }
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
