import { lstatSync } from "node:fs";
import { foldName } from "../policy/sandbox-name.ts";
import { type Handles, type HeldDirectory, openReadable } from "./held-path.ts";

/** Whether a directory takes `README` and `readme` for one name; undefined where the name at hand cannot tell. */
export function detectFolding(handles: Handles, directory: HeldDirectory, name: string): boolean | undefined {
  const present = lookUp(handles.below(directory, name));
  if (present === undefined) return undefined;
  const others = [swapCase(name), name.normalize("NFC"), name.normalize("NFD")].filter((other) => other !== name);
  if (others.length === 0) return undefined;
  return others.some((other) => lookUp(handles.below(directory, other)) === present);
}

/** Like `detectFolding`, by whatever the directory holds; of an empty one nothing can be told. */
export function detectFoldingByAny(handles: Handles, directory: HeldDirectory): boolean | undefined {
  const entries = openReadable(handles.below(directory, "."));
  if (entries === undefined) return undefined;
  try {
    for (let seen = 0; seen < 64; seen += 1) {
      const name = entries.readSync()?.name;
      const verdict = name === undefined ? undefined : detectFolding(handles, directory, name);
      if (name === undefined || verdict !== undefined) return verdict;
    }
    return undefined;
  } finally {
    entries.closeSync();
  }
}

/**
 * The name that stands in a folding directory for a spelling of it. ext4 keeps in memory the spelling that was asked for
 * first, so neither `readlink` of the handle nor anything but the directory itself tells the real name.
 */
export function findRealName(handles: Handles, directory: HeldDirectory, asked: string): string {
  const entries = openReadable(handles.below(directory, "."));
  if (entries === undefined) return asked;
  try {
    const wanted = foldName(asked);
    let real = asked;
    for (let name = entries.readSync()?.name; name !== undefined; name = entries.readSync()?.name) {
      if (name === asked) return asked;
      if (foldName(name) === wanted) real = name;
    }
    return real;
  } finally {
    entries.closeSync();
  }
}

function swapCase(name: string): string {
  return Array.from(name, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())).join("");
}

function lookUp(text: string): string | undefined {
  try {
    const stat = lstatSync(text, { bigint: true });
    return `${stat.dev}:${stat.ino}`;
  } catch {
    return undefined;
  }
}
