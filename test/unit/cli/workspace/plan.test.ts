import { expect, test } from "vitest";
import type { RootFacts, WorkspaceFacts } from "../../../../cli/workspace/facts.ts";
import type { GitDirectory } from "../../../../cli/workspace/git-directory.ts";
import type { GitFacts } from "../../../../cli/workspace/git-facts.ts";
import type { PathFact, PathKind } from "../../../../cli/workspace/path-fact.ts";
import { planWorkspace } from "../../../../cli/workspace/plan.ts";
import { ConfigError, UsageError } from "../../../../policy/errors.ts";

const at = (path: string, kind: PathKind = "missing"): PathFact => ({ path, kind, size: 1 });

function gitDirectory(path: string): GitDirectory {
  return {
    path,
    hooks: at(`${path}/hooks`, "directory"),
    config: at(`${path}/config`, "file"),
    configWorktree: at(`${path}/config.worktree`),
    commondir: at(`${path}/commondir`),
    followed: [],
    workTree: null,
  };
}

function repository(root: string, change: Partial<Extract<GitFacts, { kind: "repository" }>> = {}): GitFacts {
  const commonDir = `${root}/.git`;
  return {
    kind: "repository",
    entry: at(commonDir, "directory"),
    commonDir,
    outside: [],
    directories: [gitDirectory(commonDir)],
    worktrees: [],
    pointers: [],
    followed: [],
    ...change,
  };
}

function rootFacts(path: string, change: Partial<RootFacts> = {}): RootFacts {
  return {
    root: { path, typed: path, role: "project", owner: 1000 },
    directories: [at(`${path}/.agentbox`), at(`${path}/.vscode`, "directory")],
    claude: at(`${path}/.claude`, "directory"),
    settings: [at(`${path}/.claude/settings.json`, "file"), at(`${path}/.claude/settings.local.json`)],
    git: repository(path),
    ignoresCase: false,
    ...change,
  };
}

const host: WorkspaceFacts["host"] = { home: ["/home/ada"], state: ["/home/ada/.agentbox"], installation: [], agentState: [], secrets: [], sockets: [] };
const facts = (...roots: RootFacts[]): WorkspaceFacts => ({ typed: null, roots, host, complaints: [] });
const plan = (...roots: RootFacts[]) => planWorkspace({ facts: facts(...roots), yesSecrets: false, writable: [] });
const lines = (mounts: ReturnType<typeof plan>["mounts"]) => mounts.map((mount) => (mount.kind === "bind" ? `${mount.readOnly ? "ro" : "rw"} ${mount.target}` : mount.kind));

test("a repository gets its project writable, parents on themselves, and the rest read-only, outer mounts first", () => {
  const { mounts, created } = plan(rootFacts("/w/p"));
  expect(lines(mounts)).toEqual([
    "rw /w/p",
    "ro /w/p/.agentbox",
    "rw /w/p/.claude",
    "rw /w/p/.git",
    "ro /w/p/.vscode",
    "ro /w/p/.claude/settings.json",
    "ro /w/p/.claude/settings.local.json",
    "ro /w/p/.git/commondir",
    "ro /w/p/.git/config",
    "ro /w/p/.git/config.worktree",
    "ro /w/p/.git/hooks",
  ]);
  expect(created).toEqual(["/w/p/.agentbox", "/w/p/.claude/settings.local.json", "/w/p/.git/commondir", "/w/p/.git/config.worktree"]);
  for (const mount of mounts) expect(mount).toMatchObject({ kind: "bind", source: mount.target });
});

test("an absent file of the working tree is covered by a directory, one of git by a file that changes nothing", () => {
  const kinds = new Map(plan(rootFacts("/w/p")).guarded.map(({ path, kind, placeholder }) => [path, { kind, placeholder }]));
  expect(kinds.get("/w/p/.claude/settings.local.json")?.kind).toBe("directory");
  expect(kinds.get("/w/p/.git/commondir")).toEqual({ kind: "file", placeholder: ".\n" });
  expect(kinds.get("/w/p/.git/config.worktree")).toEqual({ kind: "file", placeholder: "" });
});

test("a directory without a repository has .git covered, and is told so", () => {
  const { mounts, notices } = plan(rootFacts("/w/p", { git: { kind: "none", entry: at("/w/p/.git"), outer: null } }));
  expect(lines(mounts)).toContain("ro /w/p/.git");
  expect(notices.join()).toContain("git init");
});

test("a part of a larger repository points to where the repository is", () => {
  const { notices } = plan(rootFacts("/w/p", { git: { kind: "none", entry: at("/w/p/.git"), outer: "/w" } }));
  expect(notices.join()).toContain('"/w"');
});

test("a linked worktree gets the common directory, its own entry writable and the others read-only", () => {
  const common = "/r/main/.git";
  const worktree = (name: string, own: boolean, workTree: string) => ({ path: `${common}/worktrees/${name}`, own, workTree, files: [at(`${common}/worktrees/${name}/gitdir`, "file")] });
  const git = repository("/w/p", {
    entry: at("/w/p/.git", "file"),
    commonDir: common,
    outside: [common],
    directories: [gitDirectory(common)],
    worktrees: [worktree("p", true, "/w/p"), worktree("other", false, "/w/other"), worktree("inner", false, "/w/p/inner")],
    pointers: [at("/w/p/.git", "file"), at("/w/other/.git", "file"), at("/w/p/inner/.git", "file")],
  });
  const { mounts, roots, gitConfig, guarded } = plan(rootFacts("/w/p", { git }));
  const shown = lines(mounts);
  expect(roots.map(({ path }) => path)).toEqual(["/w/p", common]);
  for (const line of [`rw ${common}`, `rw ${common}/worktrees`, `rw ${common}/worktrees/p`, `ro ${common}/worktrees/p/gitdir`, `ro ${common}/worktrees/other`, `rw ${common}/worktrees/inner`, `ro ${common}/config`, "ro /w/p/.git", "ro /w/p/inner/.git"]) {
    expect(shown).toContain(line);
  }
  expect(shown.join()).not.toContain("/w/other");
  expect(gitConfig).toContainEqual({ name: "gc.worktreePruneExpire", value: "never" });
  expect(guarded.find(({ path }) => path.endsWith("other"))?.watched).toBe(false);
});

test("paths that git follows are held where the box can write, and left alone elsewhere", () => {
  const followed = [
    { fact: at("/w/p/team.gitconfig", "file"), as: "file" as const, from: "/w/p/.git/config" },
    { fact: at("/w/p/.githooks"), as: "directory" as const, from: null },
    { fact: at("/home/ada/.gitinclude", "file"), as: "file" as const, from: "/w/p/.git/config" },
  ];
  const shown = lines(plan(rootFacts("/w/p", { git: repository("/w/p", { followed }) })).mounts);
  expect(shown).toContain("ro /w/p/team.gitconfig");
  expect(shown).toContain("ro /w/p/.githooks");
  expect(shown.join()).not.toContain("gitinclude");
});

test("what the user lifts is left out with everything below it, links too", () => {
  const root = rootFacts("/w/p", { directories: [at("/w/p/.vscode", "link")] });
  const { mounts } = planWorkspace({ facts: facts(root), yesSecrets: false, writable: [".vscode", ".git/", "/w/p/.claude/settings.json"] });
  expect(lines(mounts)).toEqual(["rw /w/p", "rw /w/p/.claude", "ro /w/p/.claude/settings.local.json"]);
});

test.each([".agentbox", ".", "/w/p/.agentbox", "sub"])("a configuration stays read-only, whatever is lifted: %s", (lifted) => {
  const root = rootFacts("/w/p", { directories: [at("/w/p/.agentbox", "directory"), at("/w/p/sub/.agentbox", "directory"), at("/w/p/sub/.vscode", "directory")] });
  const planned = planWorkspace({ facts: facts(root), yesSecrets: false, writable: [lifted, "sub/.vscode"] });
  expect(lines(planned.mounts)).toEqual(expect.arrayContaining(["ro /w/p/.agentbox", "ro /w/p/sub/.agentbox"]));
  expect(lines(planned.mounts)).not.toContain("ro /w/p/sub/.vscode");
});

test("a path that lifts nothing is named", () => {
  const { notices } = planWorkspace({ facts: facts(rootFacts("/w/p")), yesSecrets: false, writable: ["src", ".vscode", ".git/hooks/pre-commit"] });
  expect(notices.filter((text) => text.includes("lifts nothing"))).toEqual(['writable: "src" lifts nothing, since nothing there is read-only as a whole', 'writable: ".git/hooks/pre-commit" lifts nothing, since nothing there is read-only as a whole']);
});

test("every path that no mount can hold is named at once", () => {
  const root = rootFacts("/w/p", { directories: [at("/w/p/.vscode", "link"), at("/w/p/.devcontainer", "file")], claude: at("/w/p/.claude", "link") });
  expect(() => plan(root)).toThrow(ConfigError);
  expect(() => plan(root)).toThrow(/\.vscode" is a link[^]*\.devcontainer" is a file[^]*\.claude" is a link/);
});

test("an added directory that is part of what is read-only is refused", () => {
  const added = rootFacts("/w/p/.vscode", { root: { path: "/w/p/.vscode", typed: ".vscode", role: "added", owner: 1000 } });
  const project = rootFacts("/w/p/.vscode/x");
  expect(lines(plan(rootFacts("/w/p"), added).mounts)).toContain("ro /w/p/.vscode");
  const outer = rootFacts("/w/p", { root: { path: "/w/p", typed: "/w/p", role: "added", owner: 1000 } });
  expect(() => plan(project, outer)).toThrow(/would be writable, but lies in "\/w\/p\/\.vscode"/);
});

test("a repository outside that must not be mounted stops the start", () => {
  const git = repository("/w/p", { outside: ["/home/ada"], directories: [gitDirectory("/home/ada")] });
  expect(() => plan(rootFacts("/w/p", { git }))).toThrow(UsageError);
});

test("a disk that ignores case is told", () => {
  expect(plan(rootFacts("/w/p", { ignoresCase: true })).notices.join()).toContain(".GIT");
});
