import { lstatSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DECISION_LOG_FILE } from "../../policy/decision-record.ts";

/** In the log directory of a session; the keeper touches it every few seconds. */
export const ALIVE_FILE = "keeper.alive";

const POLL_MS = 2_500;
/** Looks without a sign of life before the keeper is asked. Counted, not measured: a machine that slept has looked at nothing meanwhile. */
const SILENT_LOOKS = 8;
const QUESTIONS = 2;

export type KeeperWatch = {
  /** The session's log directory. */
  log: string;
  /** Whether the box was ready when the watch began; one that still starts tells itself why it does not. */
  ready: boolean;
  /** Why the keeper does not answer; undefined where it does, or where it cannot be expected to. */
  ask: () => Promise<string | undefined>;
  /** Told once, with the reason. */
  onGone: (reason: string) => void;
  pollMs?: number;
};

/**
 * Watches for the keeper's signs of life while its box runs: an agent that fills the memory of its container can
 * have the kernel end keeper and proxy, and a box without them takes no change of its policy and writes no log. A silent
 * keeper is asked, and gone when it does not answer either. Returns how to stop.
 */
export function watchKeeper(watch: KeeperWatch): () => Promise<void> {
  const over = new AbortController();
  const running = follow(watch, over.signal);
  return async () => {
    over.abort();
    await running;
  };
}

async function follow({ log, ready, ask, onGone, pollMs = POLL_MS }: KeeperWatch, signal: AbortSignal): Promise<void> {
  const look = makeLook(log);
  let known = ready;
  let silent = 0;
  while (!signal.aborted) {
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
    const lives = look();
    // A proxy that decides has a keeper, be the disk too full for its file.
    known ||= lives || isThere(join(log, DECISION_LOG_FILE));
    silent = lives || !known ? 0 : silent + 1;
    if (silent < SILENT_LOOKS) continue;
    const reason = await question({ ask, look, signal });
    if (signal.aborted) return;
    if (reason !== undefined) return onGone(reason);
    silent = 0;
  }
}

async function question({ ask, look, signal }: Pick<KeeperWatch, "ask"> & { look: () => boolean; signal: AbortSignal }): Promise<string | undefined> {
  let reason: string | undefined;
  for (let asked = 0; asked < QUESTIONS && !signal.aborted; asked += 1) {
    reason = await ask();
    // The engine may be too slow for an answer while the keeper is not.
    if (reason === undefined || look()) return undefined;
  }
  return reason;
}

/**
 * Makes a look that tells whether the file was touched since the one before. Another file in its place is no
 * sign of life: the proxy may write beside it, and its log tells nothing of the keeper.
 */
function makeLook(log: string): () => boolean {
  let first: bigint | undefined;
  let touched: bigint | undefined;
  return () => {
    const stat = lstatSync(join(log, ALIVE_FILE), { bigint: true, throwIfNoEntry: false });
    if (stat?.isFile() !== true) return false;
    first ??= stat.ino;
    if (stat.ino !== first || stat.mtimeNs === touched) return false;
    touched = stat.mtimeNs;
    return true;
  };
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
