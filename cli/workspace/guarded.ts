import type { PathKind } from "./path-fact.ts";

/** One path that the box sees read-only because the host runs or obeys it later. */
export type Guarded = {
  path: string;
  kind: "file" | "directory";
  /** Nothing stands there, so that the agent could plant something: an empty one is made for the session. */
  missing: boolean;
  /** Content of the file that is made. */
  placeholder: string;
  /**
   * What the box sees. `null-device`: an absent file that git would offer to commit if the box saw an
   * empty one; git passes devices by, and a program reads nothing from it.
   */
  cover: "itself" | "null-device";
  /** Whether the protection matters so much that the box ends when the host replaces the path. */
  watched: boolean;
  /** What would run or obey it, for messages. */
  why: string;
};

/** A path that should be guarded but has the wrong kind: a link leads elsewhere and cannot be held by a mount. */
export type Misfit = { path: string; kind: PathKind; why: string };

export type Guard = Guarded | Misfit;

type Wanted = { path: string; kind: PathKind; size?: number };
type Options = { why: string; placeholder?: string; watched?: boolean; hidden?: boolean };

/** Guards a directory; a missing one is covered by an empty one. */
export function guardDirectory({ path, kind }: Wanted, { why, watched = true }: Options): Guard {
  if (kind !== "directory" && kind !== "missing") return { path, kind, why };
  return { path, kind: "directory", missing: kind === "missing", placeholder: "", cover: "itself", watched, why };
}

/** Guards a file; a missing one is covered by one that holds `placeholder`, or by nothing at all when `hidden`. */
export function guardFile({ path, kind, size = 0 }: Wanted, { why, placeholder = "", watched = true, hidden = false }: Options): Guard {
  if (kind !== "file" && kind !== "missing") return { path, kind, why };
  // An empty file is another session's placeholder, or as good as one.
  const cover = hidden && (kind === "missing" || size === 0) ? "null-device" : "itself";
  return { path, kind: "file", missing: kind === "missing", placeholder, cover, watched, why };
}

export function isGuarded(guard: Guard): guard is Guarded {
  return "cover" in guard;
}
