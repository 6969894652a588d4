import { realpathSync, statfsSync } from "node:fs";
import { join } from "node:path";

/**
 * Why a canonical path may never be a root, or undefined. The guard's own directory holds the policy, the answers to
 * confirmations and the audit log: a root that contains it, or lies in it, would let a session judge itself.
 */
export function findRootRefusal(root: string, home: string): string | undefined {
  if (root === "/") return "the whole file system is never granted";
  const kernel = ["/proc", "/sys", "/dev"].find((place) => isWithin(root, place));
  if (kernel !== undefined || isKernelFileSystem(root)) return `${kernel ?? root} holds the kernel's own files`;
  const own = realHome(home);
  return isWithin(root, own) || isWithin(own, root) ? `it holds ${own}, the guard's own directory, or lies in it` : undefined;
}

/** True for `path` itself and everything below it; both are canonical. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

/** True where a file is the kernel talking and no data: proc, sysfs, cgroup, debugfs, tracefs, securityfs, devpts, configfs, bpf, selinuxfs, efivarfs. Numbers of linux/magic.h. */
export function isKernelFileSystem(path: string): boolean {
  return process.platform === "linux" && KERNEL_TYPES.has(statfsSync(path).type >>> 0);
}

const KERNEL_TYPES: ReadonlySet<number> = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x1cd1, 0x62656570, 0xcafe4a11, 0xf97cff8c, 0xde5e81e4,
]);

function realHome(home: string): string {
  try {
    return join(realpathSync.native(home), ".agentbox");
  } catch {
    return join(home, ".agentbox");
  }
}
