import { detectFolding, detectFoldingByAny } from "./case-folding.ts";
import type { Handles, HeldDirectory } from "./held-path.ts";

/** Entries of each memory; a tree of more directories is looked at anew now and then. */
const LIMIT = 10_000;

/**
 * Remembers which directories fold case, by path. Only an empty directory can change that, and only on a file system made for
 * it; who swaps such a directory in renames his own files, and gains no name that rules do not see.
 */
export class FoldingMemory {
  readonly #handles: Handles;
  readonly #directories = new Map<string, boolean>();
  readonly #ways = new Map<string, boolean>();

  constructor(handles: Handles) {
    this.#handles = handles;
  }

  /** Whether a directory folds, judged by `name` in it or by what else it holds; undefined where nothing there tells. */
  look(directory: HeldDirectory, name: string): boolean | undefined {
    const known = this.#directories.get(directory.path);
    if (known !== undefined) return known;
    const seen = detectFolding(this.#handles, directory, name) ?? detectFoldingByAny(this.#handles, directory);
    if (seen !== undefined) remember(this.#directories, directory.path, seen);
    return seen;
  }

  /** Whether any directory between a root and this one, both included, folds; undefined where they have not all been looked at. */
  way(path: string): boolean | undefined {
    return this.#ways.get(path);
  }

  rememberWay(path: string, folds: boolean): void {
    remember(this.#ways, path, folds);
  }
}

function remember(memory: Map<string, boolean>, path: string, folds: boolean): void {
  if (memory.size >= LIMIT) memory.clear();
  memory.set(path, folds);
}
