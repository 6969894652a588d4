import { lstatSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError, KnownError, renderComplaint } from "../../policy/errors.ts";

/** Change notices do not arrive from every file system, and a file that is replaced has another number. */
const pollMs = 300;

export type ConfigWatch = {
  /** The files to look at: now, and again after each reload, since a file may name others. */
  list: () => readonly string[];
  /** Takes the files as they are now, or throws and leaves what was before. */
  reload: () => Promise<void>;
  /** Told after every attempt what is wrong; an empty list means nothing is. */
  tell: (troubles: readonly string[]) => Promise<void>;
};

/** Watches the configuration of a running box and reloads it when a file changed, came or went. Returns how to stop; then no reload is under way. */
export function watchConfig({ list, reload, tell }: ConfigWatch): () => Promise<void> {
  const over = new AbortController();
  const run = async (): Promise<void> => {
    let files = list();
    let seen = identify(files);
    while (!over.signal.aborted) {
      await sleep(pollMs, undefined, { signal: over.signal }).catch(() => undefined);
      const now = identify(files);
      if (over.signal.aborted || now === seen) continue;
      // What changes during the reload is seen by the next look.
      seen = now;
      const { troubles, again } = await attempt(reload);
      const named = list();
      // How the files named now stood when they were read is not known, and a box that is still starting has nobody to ask yet.
      if (again || named.join("\n") !== files.join("\n")) seen = "";
      files = named;
      await tell(troubles).catch(() => undefined);
    }
  };
  const running = run();
  return async () => {
    over.abort();
    await running;
  };
}

/** The old policy serves on, whatever failed: a broken file, an engine that does not answer, a bug of ours. */
async function attempt(reload: () => Promise<void>): Promise<{ troubles: string[]; again: boolean }> {
  try {
    await reload();
    return { troubles: [], again: false };
  } catch (error) {
    if (error instanceof KnownError) return { troubles: error.complaints.map(renderComplaint), again: error instanceof EngineError };
    return { troubles: [error instanceof Error ? error.message : String(error)], again: false };
  }
}

function identify(files: readonly string[]): string {
  return files.map((file) => `${file} ${identifyFile(file)}`).join("\n");
}

function identifyFile(file: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = lstatSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return "missing";
  }
}
