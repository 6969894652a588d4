import { lstatSync, readFileSync } from "node:fs";
import type { BoxSpec, MountedPath } from "../policy/box-spec.ts";
import { type Complaint, FirewallError } from "../policy/errors.ts";
import { quotePath } from "../policy/parsed.ts";
import { actAs } from "./act-as.ts";

/**
 * Throws FirewallError unless each path of the specification is a mount of its own and shows the very
 * file that the command line planned. The engine follows links of the host and of the box when it
 * mounts, and an agent in another box of the project may have planted one just for that moment.
 *
 * Each bind makes one mount. When all paths are mount points, none of the mounts lies elsewhere.
 */
export async function checkMounts({ user, mounts = [] }: Pick<BoxSpec, "user" | "mounts">): Promise<void> {
  const points = parseMountPoints(readFileSync("/proc/self/mountinfo", "utf8"));
  // Root has no capability to look into the agent's directories.
  const complaints = await actAs(user, async () => mounts.flatMap((mount) => checkMount(mount, points)));
  if (complaints.length > 0) throw new FirewallError(complaints);
}

/** Reads the mount points out of proc_pid_mountinfo(5), which writes blanks and backslashes as octal numbers. */
export function parseMountPoints(text: string): Set<string> {
  const fields = text.split("\n").flatMap((line) => line.split(" ")[4] ?? []);
  return new Set(fields.map((field) => field.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))));
}

function checkMount({ target, device, inode }: MountedPath, points: ReadonlySet<string>): Complaint[] {
  if (!points.has(target)) return [describe(target, "is not mounted")];
  try {
    const stat = lstatSync(target, { bigint: true });
    return String(stat.dev) === device && String(stat.ino) === inode ? [] : [describe(target, "is another file")];
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return [code === "EACCES" ? describeClosed(target) : describe(target, `cannot be looked at as the agent (${code})`)];
  }
}

/** Root without capabilities, as `shell --admin` has it, enters no directory that is closed to others. */
function describeClosed(target: string): Complaint {
  return {
    what: `${quotePath(target)} is closed to the user that this box runs as, who has no capability to enter it all the same`,
    expected: "directories that this user may enter, down to the project",
    fix: "use agentbox shell without --admin, or open the directories above it with chmod o+x",
  };
}

function describe(target: string, flaw: string): Complaint {
  return {
    what: `${quotePath(target)} was replaced between planning and start: in the box it ${flaw}`,
    expected: "the file or directory that the plan saw",
    fix: "start again; if that was not you, look at what runs in other boxes of the project",
  };
}
