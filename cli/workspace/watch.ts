import { watch, type FSWatcher } from "node:fs";
import { dirname, join } from "node:path";
import { quotePath } from "../../policy/parsed.ts";
import { findReplaced, type Snapshot } from "./snapshot.ts";

const SETTLE_MS = 20;
const POLL_MS = 1000;

/**
 * Calls `onReplaced` once, with the reason, when the host replaces, moves or removes a protected path.
 * An engine cannot mount it again into a running box without more privileges than a user should lend,
 * so the box has to end. Changes in place keep the mount and are no matter. Returns how to stop.
 *
 * Directories are watched for speed; the poll is for file systems that do not tell (network, desktop VMs).
 * A path that was away for a moment counts, too: the engine may have mounted just then.
 */
export function watchSnapshot(snapshot: Snapshot, onReplaced: (reason: string) => void): () => void {
  const watchers: FSWatcher[] = [];
  let settle: NodeJS.Timeout | undefined;
  let stopped = false;
  const stop = (): void => {
    stopped = true;
    clearTimeout(settle);
    clearInterval(poll);
    for (const watcher of watchers) watcher.close();
  };
  const end = (path: string): void => {
    stop();
    onReplaced(`${quotePath(path)} was replaced on the host, so the box no longer has it read-only`);
  };
  const check = (): void => {
    const path = stopped ? null : findReplaced(snapshot);
    if (path !== null) end(path);
  };
  const checkSoon = (): void => {
    clearTimeout(settle);
    settle = setTimeout(check, SETTLE_MS).unref();
  };
  const poll = setInterval(check, POLL_MS).unref();
  const paths = new Set(snapshot.map(({ path }) => path));
  for (const directory of new Set(snapshot.map(({ path }) => dirname(path)))) {
    try {
      const watcher = watch(directory, { persistent: false }, (event, name) => {
        const path = name === null ? directory : join(directory, name);
        if (event === "rename" && !stopped && paths.has(path)) end(path);
        else checkSoon();
      });
      watcher.on("error", checkSoon);
      watchers.push(watcher);
    } catch {
      // No more watches on this machine, or the directory is gone: the poll sees it.
      checkSoon();
    }
  }
  // Something may have changed between the snapshot and the start of the container.
  checkSoon();
  return stop;
}
