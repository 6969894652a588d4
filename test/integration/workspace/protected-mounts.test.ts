import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readWorkspace } from "../../../cli/workspace/facts.ts";
import { planWorkspace, type WorkspacePlan } from "../../../cli/workspace/plan.ts";
import { openWorkspace, type OpenWorkspace } from "../../../cli/workspace/workspace.ts";
import { git, hasDocker, importImage, makeDirectory, removeImage, runInBox } from "./box.ts";

const created: string[] = [];
const open: OpenWorkspace[] = [];
let home: string;
let project: string;

type Entered = OpenWorkspace & { gitConfig: WorkspacePlan["gitConfig"] };

async function enter(cwd: string, { addDirs = [], writable = [] }: { addDirs?: string[]; writable?: string[] } = {}): Promise<Entered> {
  const stateDir = join(home, ".agentbox");
  const facts = await readWorkspace({ cwd, addDirs, home, stateDir, installation: "/opt/agentbox", env: {} });
  const plan = planWorkspace({ facts, yesSecrets: false, writable });
  const workspace = openWorkspace({ plan, stateDir, session: `s${open.length}` });
  open.push(workspace);
  return { ...workspace, gitConfig: plan.gitConfig };
}

function makeRepository(path: string): void {
  mkdirSync(path, { recursive: true });
  git(path, "init", "-q");
  writeFileSync(join(path, "file"), "one\n");
  git(path, "add", ".");
  git(path, "commit", "-q", "-m", "first");
}

function tree(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) => !/(^|\/)(objects|refs|logs)(\/|$)/.test(path)).toSorted();
}

describe.skipIf(!hasDocker())("in a Docker box", { timeout: 180_000 }, () => {
  beforeAll(importImage, 60_000);
  beforeEach(() => {
    const place = makeDirectory();
    created.push(place);
    home = join(place, "home");
    project = join(place, "pro,ject: \"1\" -x");
    mkdirSync(home);
    mkdirSync(project);
  });
  afterEach(() => {
    for (const workspace of open.splice(0)) workspace.close();
  });
  afterAll(() => {
    removeImage();
    for (const path of created) rmSync(path, { recursive: true, force: true });
  });

  test("a normal file is writable, belongs to the user, and git commits", async () => {
    makeRepository(project);
    const workspace = await enter(project);
    const answer = runInBox(workspace, project, "echo two >> file && echo new > new && git add -A && git commit -qm second && git status --short && git gc -q && git log --oneline | wc -l");
    expect(answer).toEqual({ status: 0, output: "2\n" });
    expect(readFileSync(join(project, "file"), "utf8")).toBe("one\ntwo\n");
    expect(lstatSync(join(project, "new")).uid).toBe(process.getuid?.());
    expect(git(project, "show", "--stat", "--format=%s", "HEAD")).not.toContain("settings");
  });

  const attacks = [
    ["edits the configuration", "echo '[core]' >> .git/config"],
    ["sets a variable with git", "git config core.fsmonitor 'touch x'"],
    ["adds a remote", "git remote add evil https://example.com"],
    ["replaces the configuration", "echo x > c && mv c .git/config"],
    ["removes the configuration", "rm -f .git/config"],
    ["plants a hook", "printf '#!/bin/sh\\n' > .git/hooks/pre-commit"],
    ["removes the hooks directory", "rm -rf .git/hooks && ! test -d .git/hooks"],
    ["renames the hooks directory", "mv .git/hooks .git/h"],
    ["renames the repository", "mv .git git2"],
    ["exchanges the repository for a copy", "cp -r .git git2 && rm -rf .git && mv git2 .git"],
    ["plants a common directory", "echo ../evil > .git/commondir"],
    ["replaces the common directory", "echo ../evil > d && mv -f d .git/commondir"],
    ["plants a worktree configuration", "echo '[core]' > .git/config.worktree"],
    ["plants devcontainer settings", "mkdir -p .devcontainer && echo '{}' > .devcontainer/devcontainer.json"],
    ["plants editor tasks", "echo '{}' > .vscode/tasks.json"],
    ["edits editor settings", "echo '{}' > .vscode/settings.json"],
    ["renames the editor's directory", "mv .vscode v && mkdir .vscode"],
    ["plants a policy", "echo x > .agentbox/config.toml"],
    ["renames the policy's directory", "mv .agentbox a"],
    ["replaces an agent's settings", "echo '{}' > s && mv -f s .claude/settings.json"],
    ["removes an agent's settings", "rm -f .claude/settings.json"],
    ["plants an agent's local settings", "echo '{}' > .claude/settings.local.json"],
    ["replaces an agent's absent local settings", "echo '{}' > s && mv -fT s .claude/settings.local.json"],
    ["removes what covers an agent's absent settings", "rmdir .claude/settings.local.json && echo > .claude/settings.local.json"],
    ["renames the agent's directory", "mv .claude c && mkdir .claude"],
    ["unmounts a protection", "umount .git/config"],
    ["links over the configuration", "ln -sf ../evil .git/config"],
    ["links the configuration to a writable name", "ln .git/config c && echo x >> c"],
  ] as const;

  test.each(attacks)("refuses an agent that %s", async (_name, script) => {
    makeRepository(project);
    mkdirSync(join(project, ".vscode"));
    writeFileSync(join(project, ".vscode", "settings.json"), "{ }");
    mkdirSync(join(project, ".claude"));
    writeFileSync(join(project, ".claude", "settings.json"), '{"a":1}');
    const config = readFileSync(join(project, ".git/config"), "utf8");
    const before = tree(join(project, ".git", "hooks"));
    const workspace = await enter(project);
    const answer = runInBox(workspace, project, script);
    expect(answer.status).not.toBe(0);
    expect(answer.output).toMatch(/Read-only file system|Device or resource busy|Invalid cross-device link|must be superuser|not permitted|Is a directory|cannot overwrite|could not (lock|write)|cannot (move|unmount)/);
    expect(readFileSync(join(project, ".git/config"), "utf8")).toBe(config);
    expect(tree(join(project, ".git", "hooks"))).toEqual(before);
    expect(readFileSync(join(project, ".vscode/settings.json"), "utf8")).toBe("{ }");
    expect(readFileSync(join(project, ".claude/settings.json"), "utf8")).toBe('{"a":1}');
    // A copy of the repository under another name cannot be prevented, only told.
    expect(workspace.close().filter((notice) => !notice.includes('ran: "git2";'))).toEqual([]);
    for (const path of [".devcontainer", ".agentbox", ".git/commondir", ".git/config.worktree", ".claude/settings.local.json", "evil"]) {
      expect(existsSync(join(project, path))).toBe(false);
    }
  });

  test("absent settings cannot be planted, and a commit of everything leaves their covers out", async () => {
    makeRepository(project);
    const workspace = await enter(project);
    const answer = runInBox(workspace, project, "git status --short; echo > .claude/settings.json; touch .claude/own; git add -A && git commit -qm x; git ls-files");
    expect(answer.output).toMatch(/^\.claude\/own\nfile\n.*settings.json: Is a directory\n$/);
    expect(workspace.close()).toEqual([]);
    expect(tree(join(project, ".claude"))).toEqual(["own"]);
  });

  test("a directory without a repository cannot be made one, and is left as it was", async () => {
    writeFileSync(join(project, "file"), "");
    const workspace = await enter(project);
    const answer = runInBox(workspace, project, "git init; mkdir .git/hooks; mv .git g; touch ok");
    expect(answer.output).toMatch(/Read-only file system/);
    workspace.close();
    expect(readdirSync(project).toSorted()).toEqual(["file", "ok"]);
  });

  test("a linked worktree works at its own path, and pruning in the box spares the others", async () => {
    const main = join(home, "main repo");
    makeRepository(main);
    git(main, "worktree", "add", "-q", join(home, "other"));
    git(main, "worktree", "add", "-q", join(project, "wt"));
    const workspace = await enter(join(project, "wt"));
    const script = "echo w > w && git add w && git commit -qm w && git log --oneline | wc -l; git worktree prune --expire now; git gc -q --prune=now && echo collected; git config x.y z; echo > ../../commondir; echo x > .git";
    const answer = runInBox(workspace, join(project, "wt"), script);
    expect(answer.output).toMatch(/^2\n[^]*collected/);
    workspace.close();
    expect(git(join(home, "other"), "status", "--short")).toBe("");
    expect(git(main, "worktree", "list").trim().split("\n")).toHaveLength(3);
    expect(readFileSync(join(project, "wt", ".git"), "utf8")).toMatch(/^gitdir: /);
    expect(readFileSync(join(main, ".git/config"), "utf8")).not.toContain("[x]");
    expect(existsSync(join(main, ".git/commondir"))).toBe(false);
    expect(git(join(project, "wt"), "log", "--format=%s", "-1").trim()).toBe("w");
  });

  test("pruning in the main checkout spares worktrees that the box does not see", async () => {
    makeRepository(project);
    git(project, "worktree", "add", "-q", join(home, "other"));
    const workspace = await enter(project);
    const answer = runInBox(workspace, project, "git worktree prune --expire now; git gc -q --prune=now && echo collected; rm -rf .git/worktrees; mv -T .git/worktrees w; git worktree add -q inner && git -C inner status --short");
    expect(answer.output).toMatch(/collected[^]*Read-only file system/);
    workspace.close();
    expect(git(join(home, "other"), "status", "--short")).toBe("");
    expect(git(join(project, "inner"), "status", "--short")).toBe("");
  });

  test("a submodule's configuration, hooks and pointer are held, and it takes commits", async () => {
    makeRepository(join(home, "sub"));
    makeRepository(project);
    git(project, "submodule", "--quiet", "add", join(home, "sub"), "lib/sub");
    git(project, "commit", "-qm", "submodule");
    const config = readFileSync(join(project, ".git/modules/lib/sub/config"), "utf8");
    const workspace = await enter(project);
    const script = [
      "cd lib/sub && echo s > s && git add s && git commit -qm s && cd ../.. && git add -A && git commit -qm bump",
      "echo x >> .git/modules/lib/sub/config",
      "echo x > .git/modules/lib/sub/hooks/post-checkout",
      "echo gitdir: ../../evil > lib/sub/.git",
      "rm -f lib/sub/.git",
      "mv -T lib/sub lib/sub2",
      "mv -T .git/modules .git/m",
      "echo ../x > .git/modules/lib/sub/commondir",
    ].join("; ");
    const answer = runInBox(workspace, project, script);
    expect(answer.output.match(/Read-only file system|Device or resource busy/g)).toHaveLength(7);
    expect(workspace.close()).toEqual([]);
    expect(git(project, "log", "--format=%s", "-1").trim()).toBe("bump");
    expect(git(join(project, "lib/sub"), "log", "--format=%s", "-1").trim()).toBe("s");
    expect(readFileSync(join(project, ".git/modules/lib/sub/config"), "utf8")).toBe(config);
  });

  test("a hooks directory in the project and an included configuration file are held", async () => {
    makeRepository(project);
    mkdirSync(join(project, ".husky/_"), { recursive: true });
    writeFileSync(join(project, "team.gitconfig"), "[alias]\n");
    git(project, "config", "core.hooksPath", ".husky/_");
    git(project, "config", "include.path", "../team.gitconfig");
    const workspace = await enter(project);
    const answer = runInBox(workspace, project, "echo x > .husky/pre-commit; echo x >> team.gitconfig; mv .husky h; rm -f team.gitconfig");
    expect(answer.output.match(/Read-only file system|Device or resource busy/g)).toHaveLength(4);
    expect(workspace.close()).toEqual([]);
  });

  test("what the user lifts is writable", async () => {
    makeRepository(project);
    const workspace = await enter(project, { writable: [".git/config", ".vscode"] });
    const answer = runInBox(workspace, project, "git config x.y z && mkdir .vscode && echo > .vscode/a && echo > .git/hooks/h");
    expect(answer.output).toMatch(/hooks\/h: Read-only file system/);
    workspace.close();
    expect(git(project, "config", "x.y").trim()).toBe("z");
    expect(existsSync(join(project, ".vscode/a"))).toBe(true);
  });

  test("an added directory that holds the project cannot have it moved away", async () => {
    makeRepository(join(project, "a/b"));
    const workspace = await enter(join(project, "a/b"), { addDirs: [project] });
    const answer = runInBox(workspace, join(project, "a/b"), "mv ../../a ../../c; echo ok > ../../added; echo x >> .git/config; echo > ../../.vscode/x");
    expect(answer.output.match(/Read-only file system|Device or resource busy/g)).toHaveLength(3);
    workspace.close();
    expect(readFileSync(join(project, "added"), "utf8")).toBe("ok\n");
  });
});
