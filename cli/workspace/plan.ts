import { basename, dirname, resolve } from "node:path";
import { ConfigError, UsageError, type Complaint } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import type { Mount } from "../mount.ts";
import type { RootFacts, WorkspaceFacts } from "./facts.ts";
import { hidesWorktree, listGitGuards, listOutsideDirectories, SPARE_WORKTREES, type GitSetting } from "./git-guards.ts";
import { guardDirectory, guardTrackableFile, isGuarded, type Guard, type Guarded, type Misfit } from "./guarded.ts";
import { isWithin } from "./path-fact.ts";
import { checkRoot } from "./root-check.ts";
import { describeRoot, type Root } from "./roots.ts";

/** What a box gets of the host's files. Paths are real paths, the same inside and outside. */
export type WorkspacePlan = {
  /** Directory of the project, where the command starts. */
  project: string;
  /** Directories that the box may write, the project first. */
  roots: Root[];
  mounts: Mount[];
  guarded: Guarded[];
  /** Directories mounted on themselves, so that none can be renamed away with what is protected below it. */
  held: string[];
  /** Paths that are missing on the host and exist during the session as mount points. */
  created: string[];
  /** Variables for git in the box, where a read-only path would make it fail. */
  gitConfig: readonly GitSetting[];
  notices: string[];
};

type PlanQuery = {
  facts: WorkspaceFacts;
  yesSecrets: boolean;
  /** Protected paths that the user lifts, relative to the project; what lies below is lifted too. */
  writable: readonly string[];
};

/**
 * Plans the mounts of a box; pure. A directory that must not be mounted is a `UsageError`; something in
 * it that no mount can protect is a `ConfigError`. Each names every mistake found.
 */
export function planWorkspace({ facts, yesSecrets, writable }: PlanQuery): WorkspacePlan {
  const named = listNamedRoots(facts);
  const checks = named.flatMap((root) => checkRoot(root, facts.host, { yesSecrets }));
  const { roots, notices } = dropInnerRoots(named);
  const project = named.find(({ role }) => role === "project");
  if (project === undefined || facts.complaints.length + checks.length > 0) throw new UsageError([...facts.complaints, ...checks]);

  const lifted = writable.map((path) => resolve(project.path, path));
  const paths = roots.map(({ path }) => path);
  const known = facts.roots.flatMap((root) => listRootGuards(root, paths)).filter(({ path }) => paths.some((root) => isWithin(path, root)));
  const guards = known.filter(({ path }) => isNeverLifted(path) || !lifted.some((one) => isWithin(path, one)));
  const refused = facts.roots.flatMap(({ git }) => (git.kind === "refused" && !lifted.includes(`${project.path}/.git`) ? [git.complaint] : []));
  const guarded = mergeGuards(guards.filter(isGuarded));
  const misfits = guards.filter((guard): guard is Misfit => !isGuarded(guard)).map(describeMisfit);
  const swallowed = findSwallowedRoots(roots, guarded);
  const complaints = [...refused, ...dedupe(misfits), ...swallowed];
  if (complaints.length > 0) throw new ConfigError(complaints);

  const held = listHeld(guarded, paths);
  return {
    project: project.path,
    roots,
    mounts: buildMounts({ paths, held, guarded }),
    guarded,
    held,
    created: guarded.filter(({ missing }) => missing).map(({ path }) => path),
    gitConfig: facts.roots.some(({ git }) => hidesWorktree(git, paths)) ? SPARE_WORKTREES : [],
    notices: [...notices, ...listNotices(facts, project), ...listIdle(writable, project, known)],
  };
}

/** An agent that writes a configuration, be it of a project inside this one, writes its own rules. */
function isNeverLifted(path: string): boolean {
  return basename(path) === ".agentbox";
}

/** What is lifted by name and was writable anyway: most often a slip of the pen. */
function listIdle(writable: readonly string[], project: Root, guards: readonly Guard[]): string[] {
  const at = (path: string): string => resolve(project.path, path);
  // A repository that is refused is lifted by its name, and has no guards.
  return writable.filter((path) => at(path) !== `${project.path}/.git` && !guards.some((guard) => isWithin(guard.path, at(path)))).map((path) => `writable: ${quotePath(path)} lifts nothing, since nothing there is read-only as a whole`);
}

/** Lists the directories that the user named and those that their repositories need. */
function listNamedRoots({ roots }: WorkspaceFacts): Root[] {
  const outside = new Set(roots.flatMap(({ git }) => listOutsideDirectories(git)));
  const owner = roots[0]?.root.owner ?? 0;
  return [...roots.map(({ root }) => root), ...[...outside].map((path) => ({ path, typed: path, role: "git", owner }) as const)];
}

/** Leaves out what another directory brings along; the project stays, as the place where the command starts. */
function dropInnerRoots(named: readonly Root[]): { roots: Root[]; notices: string[] } {
  const holderOf = (root: Root, at: number) =>
    root.role === "project" ? undefined : named.find((other, index) => index !== at && isWithin(root.path, other.path) && (other.path !== root.path || index < at));
  const inner = named.flatMap((root, at) => {
    const holder = holderOf(root, at);
    return holder === undefined || root.role === "git" ? [] : [`${describeRoot(root)} is in the box already, as part of ${quotePath(holder.path)}`];
  });
  return { roots: named.filter((root, at) => holderOf(root, at) === undefined), notices: inner };
}

function listRootGuards({ directories, claude, settings, git }: RootFacts, writable: readonly string[]): Guard[] {
  const why = "programs of the host obey what it says";
  return [
    ...directories.map((directory) => guardDirectory(directory, { why })),
    ...(claude.kind === "directory" || claude.kind === "missing"
      ? settings.map((file) => guardTrackableFile(file, { why }))
      : [guardDirectory(claude, { why })]),
    ...listGitGuards(git, writable),
  ];
}

/** Keeps one guard a path, and drops what lies in a directory that is guarded as a whole. */
function mergeGuards(guards: readonly Guarded[]): Guarded[] {
  const byPath = new Map<string, Guarded>();
  for (const guard of guards) {
    const known = byPath.get(guard.path);
    byPath.set(guard.path, known === undefined ? guard : { ...known, watched: known.watched || guard.watched });
  }
  const all = [...byPath.values()];
  const directories = new Set(all.filter(({ kind }) => kind === "directory").map(({ path }) => path));
  return all.filter(({ path }) => !listAncestors(path, "/").some((above) => directories.has(above))).toSorted((a, b) => compareByDepth(a.path, b.path));
}

function describeMisfit({ path, kind, why, namedBy }: Misfit): Complaint {
  const flaw = kind === "link" ? "is a link, which no mount can hold in place" : `is a ${kind === "other" ? "special file" : kind}`;
  return {
    what: `${quotePath(path)} ${flaw}, and must not be changed from the box: ${why}`,
    expected: "a plain file or directory",
    fix: namedBy === undefined ? "replace it by what it leads to, or remove it" : `replace it by what it leads to, or take it out of ${quotePath(namedBy)}`,
  };
}

function findSwallowedRoots(roots: readonly Root[], guarded: readonly Guarded[]): Complaint[] {
  return roots.flatMap(({ path }) => {
    const holder = guarded.find((guard) => isWithin(path, guard.path));
    if (holder === undefined) return [];
    return [{ what: `${quotePath(path)} would be writable, but lies in ${quotePath(holder.path)}, which is read-only: ${holder.why}`, fix: chooseSwallowedFix(holder) }];
  });
}

/** An agent may have made the file, to keep the project from starting. */
function chooseSwallowedFix({ namedBy }: Guarded): string {
  return namedBy === undefined ? "leave one of the two directories out" : `correct ${quotePath(namedBy)}, or remove the repository that it belongs to if you did not make it`;
}

/** Every directory between a root and what is mounted below it. */
function listHeld(guarded: readonly Guarded[], roots: readonly string[]): string[] {
  const targets = [...guarded.map(({ path }) => path), ...roots];
  const between = targets.flatMap((path) => roots.filter((root) => root !== path && isWithin(path, root)).flatMap((root) => listAncestors(path, root)));
  return [...new Set(between)].filter((path) => !roots.includes(path)).toSorted(compareByDepth);
}

/** Lists the directories above `path` that lie strictly below `root`. */
function listAncestors(path: string, root: string): string[] {
  const above = dirname(path);
  return above === root || !isWithin(above, root) ? [] : [...listAncestors(above, root), above];
}

type MountQuery = { paths: readonly string[]; held: readonly string[]; guarded: readonly Guarded[] };

function buildMounts({ paths, held, guarded }: MountQuery): Mount[] {
  const writable = [...paths, ...held].map((path) => ({ kind: "bind", source: path, target: path, readOnly: false }) as const);
  const readOnly = guarded.map(({ path }) => ({ kind: "bind", source: path, target: path, readOnly: true }) as const);
  return [...writable, ...readOnly].toSorted((a, b) => compareByDepth(a.target, b.target));
}

/** A mount hides what was mounted below it before: the outer ones come first. */
function compareByDepth(a: string, b: string): number {
  return a.split("/").length - b.split("/").length || (a < b ? -1 : Number(a > b));
}

function listNotices({ typed, roots }: WorkspaceFacts, project: Root): string[] {
  return [
    ...(typed === null ? [] : [`${quotePath(typed)} is a link: the box has the project at ${quotePath(project.path)}`]),
    ...roots.flatMap(({ root, git, ignoresCase }) => [
      ...(git.kind === "none" ? [describeNoRepository(root, git.outer)] : []),
      ...(ignoresCase ? [`the disk of ${quotePath(root.path)} takes .GIT for .git: read-only paths are compared at the end, not held in every spelling`] : []),
    ]),
  ];
}

function describeNoRepository({ path }: Root, outer: string | null): string {
  if (outer !== null) return `the repository at ${quotePath(outer)} is not in the box: start there if the agent is to use git`;
  return `${quotePath(path)} is no git repository, and the box cannot make it one: run git init first if the agent is to commit`;
}

function dedupe(complaints: readonly Complaint[]): Complaint[] {
  return [...new Map(complaints.map((complaint) => [complaint.what, complaint])).values()];
}
