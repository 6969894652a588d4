import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { BoxSpec } from "../policy/box-spec.ts";
import { FirewallError } from "../policy/errors.ts";
import { dropPrivileges, type Ids } from "../policy/privileges.ts";

const HAND_OVER_LIMIT_MS = 60_000;
const POLL_MS = 5;

// What stays of a firewall container's entrypoint only keeps the container alive.
const NOBODY: Ids = { uid: 65_534, gid: 65_534 };

/**
 * Builds the argv that this process turns into. Two programs hand over to each other:
 *
 * 1. `setpriv` gives up every privilege for good, in an empty environment.
 * 2. `env`, already without privileges, sets the agent's environment and directory and resets the
 *    signals that Node ignores. Only here do the user's variables become real: before, as root, a
 *    LD_PRELOAD among them would have acted.
 *
 * A holder, which runs no agent, becomes a process that only waits.
 */
export function buildAgentArgv({ role, user, admin, firewall, cwd, env, command }: BoxSpec): string[] {
  if (role === "holder") return [...dropPrivileges(NOBODY), ...setEnvironment({}, "/"), "/bin/sleep", "infinity"];
  const ids = admin ? { uid: 0, gid: 0 } : user;
  // The agent's container of a sidecar starts as the agent, with nothing to give up.
  const keepsPrivileges = (admin && !firewall) || role === "agent";
  return [...(keepsPrivileges ? [] : dropPrivileges(ids)), ...setEnvironment(env, cwd), ...guardCommand(command)];
}

function setEnvironment(env: Readonly<Record<string, string>>, cwd: string): string[] {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return ["/usr/bin/env", "--ignore-environment", "--default-signal", `--chdir=${cwd}`, ...variables];
}

/** env(1) would take a program whose path holds "=" for a variable; a fixed shell line then starts it. */
function guardCommand(command: readonly string[]): readonly string[] {
  return command[0]?.includes("=") ? ["/bin/sh", "-c", 'exec "$0" "$@"', ...command] : command;
}

/** Waits until the command line has taken the launch screen away, which it says by removing `file`. */
export async function awaitHandOver(file: string): Promise<void> {
  const limit = performance.now() + HAND_OVER_LIMIT_MS;
  while (existsSync(file)) {
    if (performance.now() > limit) {
      throw new FirewallError({ what: "the terminal was not handed over in time", fix: "start again; agentbox cleanup removes what is left" });
    }
    await sleep(POLL_MS);
  }
}

/** When memory runs out, the kernel shall end a program of the agent's and not the keeper of the walls. */
function offerToMemoryKiller(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "300");
  } catch {
    // An engine may have set it higher already, and refuses less.
  }
}

/** Becomes the agent; does not return. */
export function execAgent(spec: BoxSpec): never {
  const argv = buildAgentArgv(spec);
  const [file = ""] = argv;
  offerToMemoryKiller();
  process.execve?.(file, argv, {});
  throw new Error("this Node has no process.execve");
}
