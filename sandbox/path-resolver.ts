import { closeSync, fstatSync } from "node:fs";
import { quotePath } from "../policy/parsed.ts";
import { asFileError, FileError, GuardError } from "./errors.ts";
import { FoldingMemory } from "./folding-memory.ts";
import { isKernelFileSystem } from "./forbidden-root.ts";
import type { Grant } from "./grant.ts";
import type { GrantManager } from "./grant-manager.ts";
import { type Handles, systemHandles } from "./held-path.ts";
import { judgeNames } from "./judge-names.ts";
import { judgeAccess, judgeObject, type Purpose } from "./judge-object.ts";
import { type Asked, closeFound, endedGrant, Located } from "./located.ts";
import { parsePathText } from "./path-text.ts";
import { type Found, openChild, refusedLink, standsAt, walkPath } from "./path-walk.ts";
import type { Intent } from "./request.ts";

/** `path` is absolute, or relative to the first root of the session. */
export type PathQuestion = { sessionId: string; path: string; intent: Intent };

/** How often a path is looked up again where somebody else was just renaming on it. */
const MOST_TRIES = 3;

/**
 * Turns a path into handles inside a granted root, or refuses it. It judges grant, names, links and what stands there;
 * rules and questions come after it. It works synchronously, since the kernel answers faster than a promise turns.
 */
export class PathResolver {
  readonly #grants: GrantManager;
  readonly #handles: Handles;
  readonly #folding: FoldingMemory;

  constructor(grants: GrantManager, handles: Handles = systemHandles) {
    this.#grants = grants;
    this.#handles = handles;
    this.#folding = new FoldingMemory(handles);
  }

  /** Throws GuardError for what is refused, FileError for what does not exist. The answer is the caller's to close. */
  locate({ sessionId, path, intent }: PathQuestion): Located {
    return this.#locate(sessionId, path, intent);
  }

  /** Both ends of a move or rename, which have to lie in one root; the destination may exist, which is for the rules to judge. */
  locateMove({ sessionId, path, destinationPath, intent }: PathQuestion & { destinationPath: string }): { source: Located; destination: Located } {
    const source = this.#locate(sessionId, path, intent);
    try {
      const destination = this.#locate(sessionId, destinationPath, "destination");
      if (destination.grant === source.grant) return { source, destination };
      destination.close();
      throw new GuardError("cross-root", "roots", {
        what: `${quotePath(source.path)} and ${quotePath(destination.path)} lie in different roots`,
        fix: "write the file anew there, then delete it here",
      });
    } catch (error) {
      source.close();
      throw error;
    }
  }

  #locate(sessionId: string, path: string, purpose: Purpose): Located {
    const asked = this.#ask(sessionId, path, purpose);
    judgeNames(asked.grant, asked.names, purpose);
    try {
      const found = this.#find(asked);
      try {
        this.#judge(asked, found);
        return new Located({ asked, found, handles: this.#handles, grants: this.#grants });
      } catch (error) {
        closeFound(found);
        throw error;
      }
    } catch (error) {
      throw asFileError(error, path);
    }
  }

  /** Finds the grant by text alone, before anything is looked up: outside of every root not even existence is told. */
  #ask(sessionId: string, path: string, purpose: Purpose): Asked {
    const { components, isDirectory } = parsePathText(path.startsWith("/") ? path : `${this.#grants.firstRoot(sessionId) ?? "."}/${path}`);
    const climb = components.indexOf("..");
    const grant = this.#grants.grantOfText(sessionId, `/${(climb === -1 ? components : components.slice(0, climb)).join("/")}`);
    if (grant === undefined) {
      throw new GuardError("outside-roots", "roots", { what: `${quotePath(path)} lies in no granted root of the session`, fix: "have its folder granted" });
    }
    if (!this.#grants.isLive(grant)) throw endedGrant(grant);
    judgeAccess(grant, purpose, undefined);
    return { grant, names: components.slice(depthIn(components, grant)), isDirectory, purpose };
  }

  #find(asked: Asked): Found {
    for (let tries = 1; ; tries += 1) {
      const direct = this.#findDirectly(asked);
      if (direct !== undefined) return direct;
      const found = this.#walk(asked);
      const held = found.object?.fd ?? found.parent?.fd;
      const place = found.object === undefined ? (found.parent?.path ?? "") : found.path;
      if (held !== undefined && standsAt(this.#handles, held, { path: place, folds: found.folds })) return found;
      closeFound(found);
      if (tries === MOST_TRIES) throw refusedLink(found.path, "it was exchanged while it was looked at");
    }
  }

  #walk({ grant, names, isDirectory, purpose }: Asked): Found {
    const followLast = purpose === "read" || purpose === "write" || (purpose === "list" && isDirectory);
    return walkPath({ handles: this.#handles, folding: this.#folding, grant, names, isDirectory: isDirectory && names.length > 0, followLast });
  }

  /**
   * One lookup by the kernel instead of one a name. Where the opened thing's real path is the text that was asked for, no
   * link was on the way; otherwise, and where something is missing, the walk tells what.
   */
  #findDirectly({ grant, names, isDirectory, purpose }: Asked): Found | undefined {
    const name = names.at(-1);
    if (name === undefined || isDirectory || names.includes("..")) return undefined;
    const above = names.slice(0, -1).join("/");
    const directoryPath = above === "" ? grant.root : `${grant.root}/${above}`;
    if (this.#folding.way(directoryPath) !== false) return undefined;
    const path = `${directoryPath}/${name}`;
    try {
      return purpose === "read" || purpose === "list"
        ? this.#openObject(grant, { path, name, text: above === "" ? name : `${above}/${name}` })
        : this.#openEntry(grant, { path, name, above, directoryPath, purpose });
    } catch (error) {
      if (error instanceof Error && "code" in error) return undefined;
      throw error;
    }
  }

  #openObject(grant: Grant, { path, name, text }: { path: string; name: string; text: string }): Found | undefined {
    const fd = this.#handles.open(this.#handles.below(grant.directory, text));
    const stat = fstatSync(fd);
    if (!stat.isSymbolicLink() && this.#handles.placeOf(fd, path) === path) return { path, name, parent: undefined, object: { fd, stat }, folds: false };
    closeSync(fd);
    return undefined;
  }

  #openEntry(grant: Grant, { path, name, above, directoryPath, purpose }: { path: string; name: string; above: string; directoryPath: string; purpose: Purpose }): Found | undefined {
    const parent = { fd: this.#handles.open(this.#handles.below(grant.directory, above === "" ? "." : above)), path: directoryPath };
    let object: Found["object"];
    try {
      if (fstatSync(parent.fd).isDirectory() && this.#handles.placeOf(parent.fd, directoryPath) === directoryPath) {
        object = openChild(this.#handles, parent, name);
        if (purpose !== "write" || object?.stat.isSymbolicLink() !== true) return { path, name, parent, object, folds: false };
      }
    } catch (error) {
      closeSync(parent.fd);
      throw error;
    }
    closeFound({ path, name, parent, object, folds: false });
    return undefined;
  }

  #judge({ grant, names, isDirectory, purpose }: Asked, found: Found): void {
    const below = found.path.slice(grant.root.length + 1);
    if (below !== names.join("/")) judgeNames(grant, below.split("/"), purpose);
    // A deeper root has rules of its own: no way through a wider one replaces them.
    if (this.#grants.grantFor(grant.sessionId, found.path) !== grant) throw refusedLink(found.path, "it leads into another root");
    this.#judgeDevice(grant, found);
    judgeAccess(grant, purpose, found.object !== undefined);
    judgeObject(grant, found, purpose);
    if (purpose === "write" && isDirectory) throw new FileError("EISDIR", { what: `${quotePath(found.path)} ends in a slash, and no file does` });
    if ((purpose === "rename" || purpose === "move") && this.#grants.holdsRoot(grant.sessionId, found.path)) {
      throw new GuardError("not-granted", "roots", { what: `${quotePath(found.path)} holds a granted root, which would leave its grant` });
    }
  }

  /** A proc or sysfs below a root (of a container's tree, say) is no data, whatever its files look like. */
  #judgeDevice(grant: Grant, { path, object, parent }: Found): void {
    const fd = object?.fd ?? parent?.fd;
    if (fd === undefined) return;
    const { dev } = object?.stat ?? fstatSync(fd);
    if (dev === grant.device || object?.stat.isSymbolicLink() === true || !isKernelFileSystem(this.#handles.itself(fd))) return;
    throw new GuardError("special-file", "kinds", { what: `${quotePath(path)} belongs to the kernel's own file systems`, expected: "a regular file" });
  }
}

/** How many components of a path are the root, by the name under which it was found. */
function depthIn(components: readonly string[], { root, alias }: Grant): number {
  const text = `/${components.join("/")}/`;
  const base = text.startsWith(`${root}/`) ? root : (alias ?? root);
  return base.split("/").length - 1;
}
