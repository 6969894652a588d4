import type { PathKind } from "./path-fact.ts";

/** One path that the box sees read-only because the host runs or obeys it later. */
export type Guarded = {
  path: string;
  kind: "file" | "directory";
  /** Nothing stands there, so that the agent could plant something: an empty one is made for the session. */
  missing: boolean;
  /** Content of the file that is made. */
  placeholder: string;
  /** Whether the protection matters so much that the box ends when the host replaces the path. */
  watched: boolean;
  /** What would run or obey it, for messages. */
  why: string;
  /** The file that makes the host obey the path, where it is not the path's own name that does. */
  namedBy?: string | undefined;
};

/** A path that should be guarded but has the wrong kind: a link leads elsewhere and cannot be held by a mount. */
export type Misfit = { path: string; kind: PathKind; why: string; namedBy?: string | undefined };

export type Guard = Guarded | Misfit;

type Wanted = { path: string; kind: PathKind };
type Options = { why: string; placeholder?: string; watched?: boolean; namedBy?: string | undefined };

/** Guards a directory; a missing one is covered by an empty one. */
export function guardDirectory({ path, kind }: Wanted, { why, watched = true, namedBy }: Options): Guard {
  if (kind !== "directory" && kind !== "missing") return { path, kind, why, namedBy };
  return { path, kind: "directory", missing: kind === "missing", placeholder: "", watched, why, namedBy };
}

/** Guards a file; a missing one is covered by one that holds `placeholder`. */
export function guardFile({ path, kind }: Wanted, { why, placeholder = "", watched = true, namedBy }: Options): Guard {
  if (kind !== "file" && kind !== "missing") return { path, kind, why, namedBy };
  return { path, kind: "file", missing: kind === "missing", placeholder, watched, why, namedBy };
}

/**
 * Guards a file of the working tree; a missing one is covered by an empty directory. git passes that by,
 * while an empty file would be committed by the next `git add`, and a device would make that fail.
 */
export function guardTrackableFile(wanted: Wanted, options: Options): Guard {
  return wanted.kind === "file" ? guardFile(wanted, options) : guardDirectory(wanted, options);
}

export function isGuarded(guard: Guard): guard is Guarded {
  return "watched" in guard;
}
