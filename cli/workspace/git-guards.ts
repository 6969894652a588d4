import { quotePath } from "../../policy/parsed.ts";
import type { Followed } from "./git-config.ts";
import type { GitDirectory } from "./git-directory.ts";
import type { GitFacts, Worktree } from "./git-facts.ts";
import { guardDirectory, guardFile, type Guard } from "./guarded.ts";
import { isWithin } from "./path-fact.ts";

/** Lists what the host's git runs or follows in a repository. `writable` are the directories that the box may write. */
export function listGitGuards(git: GitFacts, writable: readonly string[]): Guard[] {
  if (git.kind === "refused") return [];
  if (git.kind === "none") return [guardDirectory(git.entry, { why: "git runs the hooks and the configuration of a repository" })];
  return [
    ...git.directories.flatMap(guardGitDirectory),
    ...git.worktrees.flatMap((worktree) => guardWorktree(worktree, writable)),
    ...git.pointers.map((pointer) => guardFile(pointer, { why: "git finds the repository by it" })),
    // Those whose configuration file is known come first: of guards of one path the first is kept.
    ...[...git.directories.flatMap(({ followed }) => followed), ...git.followed].map(guardFollowed),
  ];
}

/** Directories outside the roots that git needs: the common directory of a linked worktree, a separate git directory. */
export function listOutsideDirectories(git: GitFacts): string[] {
  return git.kind === "repository" ? git.outside : [];
}

function guardGitDirectory({ hooks, config, configWorktree, commondir }: GitDirectory): Guard[] {
  return [
    guardDirectory(hooks, { why: "git runs the hooks" }),
    guardFile(config, { why: "git runs commands that the configuration names" }),
    guardFile(configWorktree, { why: "git reads it as configuration" }),
    // A planted one would send git to a repository of the agent's making. "." says: this one.
    guardFile(commondir, { why: "git takes hooks and configuration from where it points", placeholder: ".\n" }),
  ];
}

/**
 * The box does not see the working trees of the other worktrees: to `git worktree prune` and `git gc` they
 * look deleted. Their entries are read-only as a whole; one whose tree is in the box stays writable.
 */
function guardWorktree(worktree: Worktree, writable: readonly string[]): Guard[] {
  if (!isInBox(worktree, writable)) return [guardDirectory({ path: worktree.path, kind: "directory" }, { why: "it belongs to another worktree", watched: false })];
  return worktree.files.map((file) => guardFile(file, { why: "git finds the repository or its configuration by it" }));
}

function isInBox({ own, workTree }: Worktree, writable: readonly string[]): boolean {
  return own || (workTree !== null && writable.some((root) => isWithin(workTree, root)));
}

/** One variable of git's configuration, as it travels in the environment. */
export type GitSetting = { name: string; value: string };

/** `git gc` would stop at entries it cannot write: it is told to leave worktrees and reflogs alone. */
export const SPARE_WORKTREES: readonly GitSetting[] = [
  { name: "gc.worktreePruneExpire", value: "never" },
  { name: "gc.reflogExpire", value: "never" },
  { name: "gc.reflogExpireUnreachable", value: "never" },
];

/** Whether a worktree of the repository lies outside the box. */
export function hidesWorktree(git: GitFacts, writable: readonly string[]): boolean {
  return git.kind === "repository" && git.worktrees.some((worktree) => !isInBox(worktree, writable));
}

function guardFollowed({ fact, as, from }: Followed): Guard {
  const source = from === null ? "" : `, as ${quotePath(from)} says`;
  const namedBy = from ?? undefined;
  return as === "directory"
    ? guardDirectory(fact, { why: `git runs the hooks in it${source}`, namedBy })
    : guardFile(fact, { why: `git reads it as configuration or runs it${source}`, namedBy });
}
