import { type FSWatcher, lstatSync, statSync, watch } from "node:fs";
import { dirname } from "node:path";

/** An editor writes in several steps: a file is read when it was left alone for so long. */
const SETTLE_MS = 100;
/** Not every file system tells of changes. */
const POLL_MS = 1000;

export type ConfigWatch = {
  /** The files to look at; asked again after each change, since links may lead elsewhere. */
  list: () => readonly string[];
  onChange: () => void;
};

/** Watches files that may be replaced, come and go, and tells when they were changed and left alone. Returns how to stop. */
export function watchFiles({ list, onChange }: ConfigWatch): () => void {
  let told = identify(list());
  let seen = told;
  let watchers: FSWatcher[] = [];
  let watched = "";
  let settle: NodeJS.Timeout | undefined;

  const look = (): void => {
    watchDirectories();
    const now = identify(list());
    if (now === told && now === seen) return;
    clearTimeout(settle);
    seen = now;
    settle = setTimeout(finish, SETTLE_MS);
  };
  const finish = (): void => {
    const now = identify(list());
    if (now !== seen) return look();
    if (now === told) return;
    told = now;
    onChange();
  };
  const watchDirectories = (): void => {
    const directories = [...new Set(list().map((file) => dirname(file)))];
    // One that was replaced is watched anew.
    const names = directories.map((directory) => `${directory} ${statSync(directory, { throwIfNoEntry: false })?.ino}`).join("\n");
    if (names === watched) return;
    watched = names;
    for (const watcher of watchers) watcher.close();
    watchers = directories.flatMap((directory) => watchDirectory(directory, look));
  };

  watchDirectories();
  const poll = setInterval(look, POLL_MS);
  return () => {
    clearInterval(poll);
    clearTimeout(settle);
    for (const watcher of watchers) watcher.close();
  };
}

function watchDirectory(directory: string, look: () => void): FSWatcher[] {
  try {
    const watcher = watch(directory, { persistent: false }, look);
    watcher.on("error", () => watcher.close());
    return [watcher];
  } catch {
    // No more watches on this machine: the poll sees it.
    return [];
  }
}

function identify(files: readonly string[]): string {
  return files.map((file) => `${file} ${identifyFile(file)}`).join("\n");
}

/** Both the link and what it leads to. */
function identifyFile(file: string): string {
  try {
    const link = lstatSync(file, { bigint: true });
    const { dev, ino, size, mtimeNs, ctimeNs } = link.isSymbolicLink() ? statSync(file, { bigint: true }) : link;
    return `${link.ino} ${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return "missing";
  }
}
