import { randomUUID } from "node:crypto";
import { closeSync, fstatSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { quotePath } from "../policy/parsed.ts";
import { asFileError, GuardError } from "./errors.ts";
import { findRootRefusal } from "./forbidden-root.ts";
import { type Grant, type GrantSpec, grantSpecSchema } from "./grant.ts";
import { type HeldDirectory, type Handles, systemHandles } from "./held-path.ts";

export type GrantManagerOptions = {
  handles?: Handles;
  /** Milliseconds of a clock that never goes back, so that setting the time prolongs no grant. */
  now?: () => number;
  /** The home directory whose `.agentbox` no root may touch. */
  home?: string;
};

type Session = {
  roots: Map<string, Grant>;
  /** From the name under which a root was granted to the root. */
  aliases: Map<string, string>;
  /** Every directory above a root. */
  above: Set<string>;
};

/** Folder grants per session. Finding the grant of a path costs steps by its depth, however many grants there are. */
export class GrantManager {
  readonly #sessions = new Map<string, Session>();
  /** Ids of the grants that are in force; a revoked one keeps its place in `roots`, see `revoke`. */
  readonly #live = new Map<string, Grant>();
  readonly #handles: Handles;
  readonly #now: () => number;
  readonly #home: string;

  constructor({ handles = systemHandles, now = () => performance.now(), home = homedir() }: GrantManagerOptions = {}) {
    this.#handles = handles;
    this.#now = now;
    this.#home = home;
  }

  /** Grants a folder to a session; a grant of the same root before it is revoked. Throws GuardError `not-granted` where the folder may be no root, FileError where there is none. */
  add(written: GrantSpec): Grant {
    const spec = grantSpecSchema.parse(written);
    const root = canonicalRoot(spec.root, this.#home);
    const session = this.#sessions.get(spec.sessionId) ?? { roots: new Map(), aliases: new Map(), above: new Set() };
    const before = session.roots.get(root);
    const { directory, device } = holdRoot(root, this.#handles);
    const asWritten = resolve(spec.root);
    const grant: Grant = {
      id: randomUUID(),
      sessionId: spec.sessionId,
      root,
      alias: asWritten === root ? undefined : asWritten,
      access: spec.access,
      output: spec.output ?? false,
      hidden: spec.hidden ?? false,
      hardLinks: spec.hardLinks ?? false,
      trash: spec.trash ?? false,
      expiresAt: spec.expires === undefined ? undefined : this.#now() + spec.expires,
      directory,
      device,
    };
    if (before === undefined) addAbove(session.above, root);
    else this.revoke(before.id);
    session.roots.set(root, grant);
    if (grant.alias !== undefined) session.aliases.set(grant.alias, root);
    this.#sessions.set(spec.sessionId, session);
    this.#live.set(grant.id, grant);
    return grant;
  }

  /** The grants of a session that are in force, in the order in which they were given. */
  list(sessionId: string): readonly Grant[] {
    return [...(this.#sessions.get(sessionId)?.roots.values() ?? [])].filter((grant) => this.isLive(grant));
  }

  /**
   * Ends a grant; false where it had ended before. Its root goes on being refused for the session: without that, taking
   * a narrow grant away would hand its folder to a wider one above it.
   */
  revoke(grantId: string): boolean {
    const grant = this.#live.get(grantId);
    if (grant === undefined) return false;
    this.#live.delete(grantId);
    closeSync(grant.directory.fd);
    return true;
  }

  /** Ends a session with all its grants. */
  endSession(sessionId: string): void {
    for (const grant of this.#sessions.get(sessionId)?.roots.values() ?? []) this.revoke(grant.id);
    this.#sessions.delete(sessionId);
  }

  /** False once a grant is revoked or has expired. */
  isLive(grant: Grant): boolean {
    return this.#live.has(grant.id) && (grant.expiresAt === undefined || this.#now() < grant.expiresAt);
  }

  /** The grant of the deepest root that holds a canonical path, whether it is live or not. Throws GuardError `no-session`. */
  grantFor(sessionId: string, path: string): Grant | undefined {
    const { roots } = this.#session(sessionId);
    return findDeepest(path, (place) => roots.get(place));
  }

  /** Like `grantFor`, for a path as it was written: a root is known by the name under which it was granted too. */
  grantOfText(sessionId: string, path: string): Grant | undefined {
    const { roots, aliases } = this.#session(sessionId);
    return findDeepest(path, (place) => roots.get(place) ?? roots.get(aliases.get(place) ?? ""));
  }

  /** Where relative paths of a session begin: its first root. */
  firstRoot(sessionId: string): string | undefined {
    return this.#session(sessionId).roots.keys().next().value;
  }

  /** True where a root, in force or ended, lies below this directory: whoever renamed the directory would move it out of its own grant. */
  holdsRoot(sessionId: string, path: string): boolean {
    return this.#session(sessionId).above.has(path);
  }

  #session(sessionId: string): Session {
    const session = this.#sessions.get(sessionId);
    if (session !== undefined) return session;
    throw new GuardError("no-session", "session", { what: `session ${sessionId} has no grants, or has ended` });
  }
}

function canonicalRoot(written: string, home: string): string {
  if (!isAbsolute(written)) throw refusedRoot(written, "it is no absolute path");
  const root = realpathOf(written);
  const refusal = findRootRefusal(root, home);
  if (refusal !== undefined) throw refusedRoot(written, refusal);
  return root;
}

function holdRoot(root: string, handles: Handles): { directory: HeldDirectory; device: number } {
  const fd = handles.open(root);
  try {
    const stat = fstatSync(fd);
    if (!stat.isDirectory()) throw refusedRoot(root, "it is no directory");
    // Whoever puts a link into the way after realpath makes this differ; so does a system without /proc, where nothing could be judged.
    if (handles.placeOf(fd, root) !== root) throw refusedRoot(root, "it was exchanged while it was looked at, or /proc is missing");
    return { directory: { fd, path: root }, device: stat.dev };
  } catch (error) {
    closeSync(fd);
    throw asFileError(error, root);
  }
}

function realpathOf(written: string): string {
  try {
    return realpathSync.native(written);
  } catch (error) {
    throw asFileError(error, written);
  }
}

function findDeepest(path: string, find: (place: string) => Grant | undefined): Grant | undefined {
  for (let place = path; place !== ""; place = place.slice(0, place.lastIndexOf("/"))) {
    const grant = find(place);
    if (grant !== undefined) return grant;
  }
  return undefined;
}

function addAbove(above: Set<string>, root: string): void {
  for (let place = root.slice(0, root.lastIndexOf("/")); place !== ""; place = place.slice(0, place.lastIndexOf("/"))) {
    above.add(place);
  }
}

function refusedRoot(root: string, why: string): GuardError {
  return new GuardError("not-granted", "root", {
    what: `${quotePath(root)} cannot be granted: ${why}`,
    expected: "a directory of the user's own data",
    fix: "grant the folder that the task needs, not one above it",
  });
}
