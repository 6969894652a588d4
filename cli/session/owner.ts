import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { z } from "zod";

/**
 * Who a session belongs to. A process id alone comes back for another process after a while, so its
 * start time goes with it; `machine` changes with every boot, and differs where a home directory is shared.
 */
export const ownerSchema = z.strictObject({ pid: z.int().positive(), start: z.string(), machine: z.string() });
export type Owner = z.infer<typeof ownerSchema>;

/** Returns the owner that the running process is. */
export async function describeSelf(): Promise<Owner> {
  return { pid: process.pid, start: (await readStartTime(process.pid)) ?? "unknown", machine: await describeMachine() };
}

/**
 * Tells whether an owner is gone. One of another machine is never taken for gone, except after a
 * restart of this one.
 */
export async function isGone(owner: Owner): Promise<boolean> {
  const machine = await describeMachine();
  if (owner.machine !== machine) return owner.machine.split("/")[0] === machine.split("/")[0];
  return (await readStartTime(owner.pid)) !== owner.start;
}

/** Renders an owner as the label of its container. */
export function renderOwner(owner: Owner): string {
  return JSON.stringify(owner);
}

/** Parses the label of a container; undefined when it is none of ours. */
export function parseOwner(label: string): Owner | undefined {
  try {
    return ownerSchema.safeParse(JSON.parse(label)).data;
  } catch {
    return undefined;
  }
}

async function describeMachine(): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  return `${hostname()}/${boot.trim()}`;
}

/** Undefined when there is no such process. */
async function readStartTime(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return await askForStartTime(pid);
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  // The program's name, in parentheses, may hold spaces and parentheses; start time is field 22.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

async function askForStartTime(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=", "-p", String(pid)], { env: { ...process.env, LC_ALL: "C" } });
    return stdout.trim() === "" ? undefined : stdout.trim();
  } catch {
    return undefined;
  }
}
