import type { MountedPath } from "../../policy/box-spec.ts";
import { FirewallError, type Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { Mount } from "../mount.ts";
import { lstatInPlace } from "./in-place.ts";
import { errorCode } from "./path-fact.ts";

/**
 * Notes what stands at every bind mount's path. The engine resolves the paths again when the box starts,
 * and follows links then: whoever planted one meanwhile would choose what the box gets of the host.
 * Paths that are missing are left out. Throws a `FirewallError` that names every path with a link in it.
 */
export function identifySources(mounts: readonly Mount[]): MountedPath[] {
  const looks = mounts.flatMap((mount) => (mount.kind === "bind" ? [identify(mount.source)] : []));
  refuseAll(looks.flatMap((look) => (look.kind === "flaw" ? [describeReplaced(look.target, look.flaw)] : [])));
  return looks.flatMap((look) => (look.kind === "found" ? [look.source] : []));
}

/** Compares with what stands there now; a path that is another file, or gone, is a `FirewallError`. */
export function requireUnchanged(sources: readonly MountedPath[]): void {
  refuseAll(
    sources.flatMap(({ target, device, inode }) => {
      const look = identify(target);
      if (look.kind === "flaw") return [describeReplaced(target, look.flaw)];
      const same = look.kind === "found" && look.source.device === device && look.source.inode === inode;
      return same ? [] : [describeReplaced(target, look.kind === "missing" ? "is gone" : "is another file")];
    }),
  );
}

type Look = { kind: "found"; source: MountedPath } | { kind: "missing" } | { kind: "flaw"; target: string; flaw: string };

function identify(target: string): Look {
  try {
    const stat = lstatInPlace(target);
    if (stat.isSymbolicLink()) return { kind: "flaw", target, flaw: "is a link" };
    return { kind: "found", source: { target, device: String(stat.dev), inode: String(stat.ino) } };
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT") return { kind: "missing" };
    return { kind: "flaw", target, flaw: code === "ENOTDIR" || code === "ELOOP" ? "has a link on the way" : `cannot be looked at (${code})` };
  }
}

function refuseAll(complaints: readonly Complaint[]): void {
  if (complaints.length > 0) throw new FirewallError(complaints);
}

function describeReplaced(path: string, flaw: string): Complaint {
  return {
    what: `${quotePath(path)} was replaced between planning and start: it ${flaw}`,
    expected: "what the box mounts to stay in place while it starts",
    fix: "start again; if that was not you, look at what runs in other boxes of the project",
  };
}
