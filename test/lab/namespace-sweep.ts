import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mustRun, runCommand } from "./command.ts";
import { isAlive } from "./process-identity.ts";

const OWN_NAME = /^abl-(\d+)-(\d+)-\d+(-\w+)?$/;
const NAMED = "/run/netns";
const RESOLVERS = "/etc/netns";

/** Where `ip netns exec` looks for a namespace's own resolv.conf. */
export function resolverDirectory(namespace: string): string {
  return join(RESOLVERS, namespace);
}

/** Removes namespaces, resolver files and run directories of labs whose starter has died. */
export async function sweepNamespaces(): Promise<void> {
  const names = new Set((await Promise.all([NAMED, RESOLVERS, tmpdir()].map(listed))).flat());
  for (const name of names) {
    const [, pid, start] = OWN_NAME.exec(name) ?? [];
    if (pid === undefined || start === undefined || isAlive({ pid: Number(pid), start })) continue;
    await removeNamespace(name);
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

/** Ends what still runs in a namespace of ours, then removes it; one that is gone already is no error. */
export async function removeNamespace(namespace: string): Promise<void> {
  if ((await listed(NAMED)).includes(namespace)) {
    const { stdout } = await runCommand(["ip", "netns", "pids", namespace]);
    for (const pid of stdout.split("\n").filter(Boolean)) endProcess(Number(pid));
    // Two labs may sweep the same leftover at once: what counts is that it is gone.
    const { exitCode } = await runCommand(["ip", "netns", "del", namespace]);
    if (exitCode !== 0 && (await listed(NAMED)).includes(namespace)) await mustRun(["ip", "netns", "del", namespace]);
  }
  await rm(resolverDirectory(namespace), { recursive: true, force: true });
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself in the meantime.
  }
}

async function listed(directory: string): Promise<string[]> {
  return await readdir(directory).catch(() => []);
}
