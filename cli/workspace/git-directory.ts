import { readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { HostRunner } from "../environment/host-command.ts";
import { readFollowedPaths, readGitConfig, type Followed } from "./git-config.ts";
import { readPathFact, resolvePath, type PathFact } from "./path-fact.ts";
import { readPlainFile } from "./plain-file.ts";

/** One git directory (of a repository or a submodule): what git on the host runs from it or follows. */
export type GitDirectory = {
  path: string;
  hooks: PathFact;
  config: PathFact;
  configWorktree: PathFact;
  commondir: PathFact;
  /** Files and directories that its configuration names, and what the links among its hooks lead to. */
  followed: Followed[];
  /** Its own working tree as configured, null where git derives it. */
  workTree: string | null;
};

export type GitReader = { run: HostRunner; home: string };

const MAX_MODULES = 1000;
const MAX_POINTER_BYTES = 16_384;
const MAX_DEPTH = 12;

/** Whether git would take the directory for a repository: HEAD, objects and refs (gitrepository-layout). */
export function isGitDirectory(path: string): boolean {
  const head = readPathFact(join(path, "HEAD")).kind;
  const stores = ["objects", "refs"].every((name) => resolvePath(join(path, name)) !== null);
  return (head === "file" || head === "link") && stores;
}

/** Reads one git directory. `workTree` is where its hooks run when its configuration does not say. */
export async function readGitDirectory(reader: GitReader, path: string, workTree: string | null): Promise<GitDirectory> {
  const fact = (name: string) => readPathFact(join(path, name));
  const [config, configWorktree, hooks] = [fact("config"), fact("config.worktree"), fact("hooks")];
  const own = await readWorkTree(reader, config);
  const tree = own ?? workTree;
  const files = [config, configWorktree].filter(({ kind }) => kind === "file").map(({ path: file }) => file);
  const followed = await Promise.all(files.map((file) => readFollowedPaths({ ...reader, file, workTree: tree })));
  const links = hooks.kind === "directory" ? findLinkTargets(hooks.path) : [];
  return { path, hooks, config, configWorktree, commondir: fact("commondir"), followed: [...followed.flat(), ...links], workTree: own };
}

/** Finds the git directories of submodules; a submodule's name may hold slashes, and it may have submodules itself. */
export function findModules(gitDir: string): string[] {
  const found: string[] = [];
  const queue = [{ path: join(gitDir, "modules"), depth: 0 }];
  for (let next = queue.shift(); next !== undefined && found.length < MAX_MODULES; next = queue.shift()) {
    const { path, depth } = next;
    if (depth > 0 && isGitDirectory(path)) {
      found.push(path);
      queue.push({ path: join(path, "modules"), depth: 0 });
    } else if (depth < MAX_DEPTH) {
      queue.push(...listDirectories(path).map((name) => ({ path: join(path, name), depth: depth + 1 })));
    }
  }
  return found;
}

/** Names of the directories in a directory, links not followed; none when it is missing. */
export function listDirectories(path: string): string[] {
  if (readPathFact(path).kind !== "directory") return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}

/** Reads the path in a `.git`, `gitdir` or `commondir` file; null when it holds none. */
export function readPointer(file: PathFact, prefix = ""): string | null {
  if (file.kind !== "file") return null;
  const found = readPlainFile(file.path, MAX_POINTER_BYTES);
  if ("flaw" in found) return null;
  const text = found.content.toString("utf8").replace(/[\r\n]+$/, "");
  if (!text.startsWith(prefix) || text.length === prefix.length || text.includes("\0")) return null;
  return resolve(dirname(file.path), text.slice(prefix.length));
}

async function readWorkTree({ run }: GitReader, config: PathFact): Promise<string | null> {
  if (config.kind !== "file") return null;
  const value = (await readGitConfig({ run, file: config.path, hint: /worktree/i, pattern: String.raw`^core\.worktree$` })).at(-1)?.value;
  return value === undefined ? null : resolvePath(resolve(dirname(config.path), value));
}

/** A hook that is a link runs the file it leads to, which may lie where the agent writes. */
function findLinkTargets(hooks: string): Followed[] {
  return readdirSync(hooks, { withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .flatMap((entry) => {
      const link = join(hooks, entry.name);
      const target = resolvePath(link);
      const fact = target === null ? null : readPathFact(target);
      return fact?.kind === "file" || fact?.kind === "directory" ? [{ fact, as: fact.kind, from: link }] : [];
    });
}
