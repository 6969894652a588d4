import { open, readFile, rm, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describeSelf, isGone, parseOwner } from "../session/owner.ts";

const pollMs = 250;

/** A lock without an owner is either being written just now, or its maker was killed while it wrote. */
const writingMs = 10_000;

/**
 * Runs `action` while no other command line builds: the second of two starts waits and then finds the
 * image ready. A lock whose owner is gone does not count.
 */
export async function withBuildLock<T>(agentboxHome: string, signal: AbortSignal, action: () => Promise<T>): Promise<T> {
  const file = path.join(agentboxHome, "build.lock");
  while (!(await takeLock(file))) await sleep(pollMs, undefined, { signal });
  try {
    return await action();
  } finally {
    await rm(file, { force: true });
  }
}

async function takeLock(file: string): Promise<boolean> {
  const owner = JSON.stringify(await describeSelf());
  try {
    const lock = await open(file, "wx", 0o600);
    await lock.writeFile(owner);
    await lock.close();
    return true;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    if (await isAbandoned(file)) await rm(file, { force: true });
    return false;
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  const owner = parseOwner(await readFile(file, "utf8").catch(() => ""));
  if (owner !== undefined) return await isGone(owner);
  const facts = await stat(file).catch(() => undefined);
  return facts !== undefined && Date.now() - facts.mtimeMs > writingMs;
}
