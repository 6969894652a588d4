import { closeSync, fstatSync, type Stats } from "node:fs";
import { quotePath } from "../policy/parsed.ts";
import { GuardError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import type { GrantManager } from "./grant-manager.ts";
import type { Handles, HeldDirectory } from "./held-path.ts";
import type { Purpose } from "./judge-object.ts";
import { type Found, refusedLink, standsAt } from "./path-walk.ts";

/** What Linux writes behind the path of a file that has no name any more. */
const DELETED = " (deleted)";

/** A path below a grant, as it was asked for; `isDirectory` where it ended in a slash. */
export type Asked = { grant: Grant; names: readonly string[]; isDirectory: boolean; purpose: Purpose };

type LocatedKind = "file" | "directory" | "link" | "missing";

/**
 * A path that was judged, and the handles that were opened while it was judged: an operation goes through these and looks no
 * name up again above the last one. It holds kernel handles, so whoever locates something closes it.
 */
export class Located {
  /** `destination` is the far end of a rename or move. */
  readonly intent: Purpose;
  readonly grant: Grant;
  /** Canonical: what rules, log and human see. */
  readonly path: string;
  /** The same below the root, without a leading slash; empty for the root itself. */
  readonly relative: string;
  /** The last name. */
  readonly name: string;
  /** True where the file system takes spellings of different case for one name: rules compare by `foldName` then. */
  readonly folds: boolean;
  readonly kind: LocatedKind;
  /** Of what stands there, as it was when it was judged; undefined where nothing does. */
  readonly stat: Stats | undefined;
  /** True where the path ended in a slash: only a directory is meant, for `create` a new one. */
  readonly wantsDirectory: boolean;
  readonly #found: Found;
  readonly #handles: Handles;
  readonly #grants: GrantManager;
  #isClosed = false;
  #mustBeUnchanged = false;

  constructor({ asked, found, handles, grants }: { asked: Asked; found: Found; handles: Handles; grants: GrantManager }) {
    const { grant } = asked;
    this.intent = asked.purpose;
    this.grant = grant;
    this.wantsDirectory = asked.isDirectory;
    this.path = found.path;
    this.relative = found.path.slice(grant.root.length + 1);
    this.name = found.name;
    this.folds = found.folds;
    this.stat = found.object?.stat;
    this.kind = kindOf(this.stat);
    this.#found = found;
    this.#handles = handles;
    this.#grants = grants;
  }

  /** Bytes of the file that stands there. */
  get size(): number {
    return this.kind === "file" ? (this.stat?.size ?? 0) : 0;
  }

  /** The text that leads to the opened thing, by no name. */
  get itself(): string {
    if (this.#found.object === undefined) throw new Error("nothing stands there");
    this.#mustBeOpen();
    return this.#handles.itself(this.#found.object.fd);
  }

  /** The directory that holds the name. */
  get parent(): HeldDirectory {
    if (this.#found.parent === undefined) throw new Error("a root is changed by nobody, and a file that is read needs no directory");
    this.#mustBeOpen();
    return this.#found.parent;
  }

  /** The text that leads to a name in the directory that was judged, whatever stands on the path by now. */
  sibling(name: string): string {
    return this.#handles.below(this.parent, name);
  }

  /** The text that leads to a name in the located directory itself; `.` is that directory. */
  inside(name: string): string {
    if (this.#found.object === undefined) throw new Error("nothing stands there");
    this.#mustBeOpen();
    return this.#handles.below({ fd: this.#found.object.fd, path: this.path }, name);
  }

  /** A human said yes to this file as it was: another that takes its name, or other contents, are something else. */
  holdToState(): void {
    this.#mustBeUnchanged = true;
  }

  /**
   * Throws where what was judged no longer holds: the grant has ended, or the directory was moved away. A human may have
   * thought for minutes since; called right before each use.
   */
  recheck(): void {
    this.#mustBeOpen();
    if (!this.#grants.isLive(this.grant)) throw endedGrant(this.grant);
    if (this.#parentStands() && this.#objectStands()) return;
    throw refusedLink(this.path, "it was exchanged after it had been judged");
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeFound(this.#found);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #parentStands(): boolean {
    const { parent, folds } = this.#found;
    return parent === undefined || standsAt(this.#handles, parent.fd, { path: parent.path, folds });
  }

  /**
   * What is taken away has to be what was judged. What is read may have been replaced: the handle is still the file
   * that stood there. What is written is replaced anyway, by whoever comes last, but where a human was asked about it.
   */
  #objectStands(): boolean {
    const { object, path, folds } = this.#found;
    if (object === undefined) return true;
    if (this.#mustBeUnchanged && this.kind === "file" && this.intent !== "read") return this.#isUnchanged(object);
    if (this.intent === "write" || this.intent === "destination") return true;
    if (standsAt(this.#handles, object.fd, { path, folds })) return true;
    return this.intent === "read" && standsAt(this.#handles, object.fd, { path: `${path}${DELETED}`, folds });
  }

  #isUnchanged({ fd, stat }: { fd: number; stat: Stats }): boolean {
    const { path, folds } = this.#found;
    const now = fstatSync(fd);
    return standsAt(this.#handles, fd, { path, folds }) && now.mtimeMs === stat.mtimeMs && now.size === stat.size;
  }

  /** The number of a closed handle is soon another file's: used again it would lead anywhere. */
  #mustBeOpen(): void {
    if (this.#isClosed) throw new Error(`${this.path} was closed before it was used`);
  }
}

/** Releases what a search opened. */
export function closeFound({ parent, object }: Found): void {
  if (parent !== undefined) closeSync(parent.fd);
  if (object !== undefined) closeSync(object.fd);
}

export function endedGrant(grant: Grant): GuardError {
  return new GuardError("not-granted", `grant:${grant.root}`, { what: `the grant of ${quotePath(grant.root)} was revoked or has expired`, fix: "have the folder granted again" });
}

function kindOf(stat: Stats | undefined): LocatedKind {
  if (stat === undefined) return "missing";
  if (stat.isDirectory()) return "directory";
  return stat.isSymbolicLink() ? "link" : "file";
}
