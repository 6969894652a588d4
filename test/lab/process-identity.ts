import { readFileSync } from "node:fs";

/** A process that cannot be mistaken for a later one with the same number. */
export type ProcessIdentity = { pid: number; start: string };

/** This process. `start` is the kernel's start time in ticks, or 0 where there is no /proc. */
export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, start: startTime(process.pid) ?? "0" };
}

/** Whether exactly that process still runs. */
export function isAlive({ pid, start }: ProcessIdentity): boolean {
  const now = startTime(pid);
  if (now !== undefined) return now === start;
  if (start !== "0") return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function startTime(pid: number): string | undefined {
  try {
    // The second field is the command in parentheses and may hold spaces: count from its end.
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
