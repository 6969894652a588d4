import { quotePath } from "../policy/parsed.ts";
import { GuardError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import { isHiddenName, judgeOwnName } from "./hidden-name.ts";
import type { Purpose } from "./judge-object.ts";

/**
 * Refuses hidden and system names below a root, and the guard's own whatever the grant says. What lies above the root
 * was named by whoever granted it. Throws GuardError `hidden`.
 */
export function judgeNames(grant: Grant, names: readonly string[], purpose: Purpose): void {
  for (const name of names) {
    if (name === "..") continue;
    const own = judgeOwnName(name);
    if (own === "never" || (own === "read-only" && purpose !== "read" && purpose !== "list")) {
      throw new GuardError("hidden", "own-files", { what: `${quotePath(name)} belongs to AgentBox`, expected: "a path that a session may use" });
    }
    if (!grant.hidden && isHiddenName(name)) {
      throw new GuardError("hidden", `grant:${grant.root}`, {
        what: `${quotePath(name)} is a hidden or system name`,
        expected: "a visible path",
        fix: "grant the folder with hidden names, or that very folder",
      });
    }
  }
}
