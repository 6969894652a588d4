import { readFileSync } from "node:fs";
import type { BoxSpec } from "../policy/box-spec.ts";

/**
 * Runs `action` with the effective ids of the agent, so that the kernel judges its sockets and files as
 * the agent's. The real ids stay root's, which is the way back.
 */
export async function actAs<T>({ uid, gid }: Pick<BoxSpec["user"], "uid" | "gid">, action: () => Promise<T>): Promise<T> {
  // In the agent's container of a sidecar nobody can change ids, and the process is the agent's from its start.
  if (!mayChangeIds()) return action();
  process.setegid?.(gid);
  process.seteuid?.(uid);
  try {
    return await action();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}

const CAP_SETUID = 7n;

function mayChangeIds(): boolean {
  const permitted = /^CapPrm:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return ((BigInt(`0x${permitted}`) >> CAP_SETUID) & 1n) === 1n;
}
