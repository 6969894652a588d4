import { dirname, join, resolve } from "node:path";
import type { Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { expandTilde, readGitConfig, readHooksDirectory, type Followed } from "./git-config.ts";
import {
  findModules,
  isGitDirectory,
  listDirectories,
  readGitDirectory,
  readPointer,
  type GitDirectory,
  type GitReader,
} from "./git-directory.ts";
import { isWithin, readPathFact, resolvePath, type PathFact } from "./path-fact.ts";

/** A linked worktree's entry in the common directory. `workTree` is null where its pointer leads nowhere. */
export type Worktree = { path: string; own: boolean; workTree: string | null; files: PathFact[] };

/** The repository at one root, as far as the host's git would run or follow something of it. */
export type GitFacts =
  /** No repository; `outer` is a directory above that is one. */
  | { kind: "none"; entry: PathFact; outer: string | null }
  | { kind: "refused"; complaint: Complaint }
  | {
      kind: "repository";
      entry: PathFact;
      commonDir: string;
      /** Directories outside the root that git needs in the box. */
      outside: string[];
      directories: GitDirectory[];
      worktrees: Worktree[];
      /** `.git` files, which say where a repository is. */
      pointers: PathFact[];
      /** The hooks directory that the user's own configuration names, when it lies in the root. */
      followed: Followed[];
    };

/** Reads the repository at `root` (a real path). */
export async function readGitFacts(reader: GitReader, root: string): Promise<GitFacts> {
  const entry = readPathFact(join(root, ".git"));
  if (entry.kind === "link" || entry.kind === "other") return refuse(entry.path, "is a link, which no mount can hold in place", LINK_FIX);
  const gitDir = entry.kind === "file" ? resolveOrNull(readPointer(entry, "gitdir: ")) : entry.path;
  if (gitDir === null) return refuse(entry.path, "names a repository that does not exist", "repair it with git worktree repair, or remove it");
  if (entry.kind === "missing") return { kind: "none", entry, outer: findOuterRepository(root) };

  const commonDir = readCommonDir(gitDir);
  if (!isGitDirectory(commonDir)) {
    if (entry.kind === "directory") return { kind: "none", entry, outer: findOuterRepository(root) };
    return refuse(entry.path, `names ${quotePath(gitDir)}, which is not a repository`, "repair it with git worktree repair, or remove it");
  }
  const common = await readGitDirectory(reader, commonDir, root);
  const outside = [commonDir, gitDir].filter((path, at, all) => !isWithin(path, root) && !(at === 1 && isWithin(path, all[0] ?? path)));
  // A `.git` file is content of the project: without a pointer back it could name any repository of the host.
  if (outside.length > 0 && !pointsBack(gitDir, common, root)) {
    return refuse(entry.path, `names ${quotePath(gitDir)}, which does not name this directory back`, backFix(gitDir, root));
  }
  const modules = await readModules(reader, [...new Set([commonDir, gitDir])]);
  const nested = await readSubmoduleTrees(reader, root);
  const worktrees = listDirectories(join(commonDir, "worktrees")).map((name) => readWorktree(join(commonDir, "worktrees", name), gitDir));
  const trees = [...modules.map(({ workTree }) => workTree), ...worktrees.map(({ workTree }) => workTree)];
  const pointers = [root, ...trees.filter((tree) => tree !== null), ...nested.trees].map((tree) => readPathFact(join(tree, ".git")));
  return {
    kind: "repository",
    entry,
    commonDir,
    outside,
    directories: [common, ...modules, ...nested.directories],
    worktrees,
    pointers: pointers.filter(({ kind }) => kind === "file"),
    followed: await readEffectiveHooks(reader, root),
  };
}

const LINK_FIX = "replace it by a file that holds `gitdir: ` and the path it leads to; git reads that alike";

function refuse(path: string, flaw: string, fix: string): GitFacts {
  return { kind: "refused", complaint: { what: `${quotePath(path)} ${flaw}`, expected: "a directory or a file of git's own making", fix } };
}

function backFix(gitDir: string, root: string): string {
  return `run git worktree repair, or git --git-dir=${quotePath(gitDir)} config core.worktree ${quotePath(root)}`;
}

function pointsBack(gitDir: string, common: GitDirectory, root: string): boolean {
  const pointer = readPointer(readPathFact(join(gitDir, "gitdir")));
  if (pointer !== null) return resolveOrNull(pointer) === join(root, ".git");
  return common.workTree === root;
}

function readCommonDir(gitDir: string): string {
  const pointer = readPointer(readPathFact(join(gitDir, "commondir")));
  return resolveOrNull(pointer) ?? gitDir;
}

function readWorktree(path: string, gitDir: string): Worktree {
  const files = ["gitdir", "commondir", "config.worktree"].map((name) => readPathFact(join(path, name)));
  const pointer = readPointer(readPathFact(join(path, "gitdir")));
  return { path, own: path === gitDir, workTree: pointer === null ? null : resolvePath(dirname(pointer)), files };
}

function readModules(reader: GitReader, gitDirs: readonly string[]): Promise<GitDirectory[]> {
  return Promise.all(gitDirs.flatMap(findModules).map((path) => readGitDirectory(reader, path, null)));
}

/** Follows `.gitmodules` downwards: a submodule made before git 1.7.8 keeps its repository in its own `.git`. */
async function readSubmoduleTrees(reader: GitReader, root: string, depth = 0): Promise<{ trees: string[]; directories: GitDirectory[] }> {
  const file = readPathFact(join(root, ".gitmodules"));
  if (file.kind !== "file" || depth > 4) return { trees: [], directories: [] };
  const entries = await readGitConfig({ run: reader.run, file: file.path, hint: /path/i, pattern: String.raw`^submodule\..*\.path$` });
  const trees = entries
    .map(({ value }) => resolve(root, value))
    .filter((path) => path !== root && isWithin(path, root) && resolvePath(path) === path);
  const directories = trees.map((tree) => join(tree, ".git")).filter((path) => readPathFact(path).kind === "directory");
  const own = await Promise.all(directories.map((path) => readGitDirectory(reader, path, dirname(path))));
  const below = await Promise.all(trees.map((tree) => readSubmoduleTrees(reader, tree, depth + 1)));
  return {
    trees: [...trees, ...below.flatMap((one) => one.trees)],
    directories: [...own, ...below.flatMap((one) => one.directories)],
  };
}

/** Asks git for the hooks directory in effect, since a user's own configuration may name one relative to every project. */
async function readEffectiveHooks({ run, home }: GitReader, root: string): Promise<Followed[]> {
  const { exitCode, stdout } = await run(["git", "config", "-z", "--get", "core.hooksPath"], { cwd: root });
  const value = stdout.replace(/\0$/, "");
  if (exitCode !== 0 || value === "") return [];
  return [readHooksDirectory(resolve(root, expandTilde(value, home)), null)];
}

function findOuterRepository(root: string): string | null {
  for (let path = dirname(root); path !== dirname(path); path = dirname(path)) {
    if (isGitDirectory(join(path, ".git")) || readPathFact(join(path, ".git")).kind === "file") return path;
  }
  return null;
}

function resolveOrNull(path: string | null): string | null {
  return path === null ? null : resolvePath(path);
}
