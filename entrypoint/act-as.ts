import type { BoxSpec } from "../policy/box-spec.ts";

/**
 * Runs `action` with the effective ids of the agent, so that the kernel judges its sockets and files as
 * the agent's. The real ids stay root's, which is the way back.
 */
export async function actAs<T>({ uid, gid }: Pick<BoxSpec["user"], "uid" | "gid">, action: () => Promise<T>): Promise<T> {
  process.setegid?.(gid);
  process.seteuid?.(uid);
  try {
    return await action();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}
