import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readWorkspace } from "../../../cli/workspace/facts.ts";
import { planWorkspace } from "../../../cli/workspace/plan.ts";
import { openWorkspace, type OpenWorkspace } from "../../../cli/workspace/workspace.ts";
import { git, makeDirectory } from "./box.ts";

let place: string;
let project: string;
let workspace: OpenWorkspace;
let reasons: string[];
let stop: () => void;

beforeEach(async () => {
  place = makeDirectory();
  project = join(place, "project");
  mkdirSync(join(project, ".vscode"), { recursive: true });
  git(project, "init", "-q");
  const stateDir = join(place, "state");
  const facts = await readWorkspace({ cwd: project, addDirs: [], home: join(place, "home"), stateDir, installation: "/opt/agentbox", env: {} });
  workspace = openWorkspace({ plan: planWorkspace({ facts, yesSecrets: false, writable: [] }), stateDir, session: "one" });
  reasons = [];
  stop = workspace.watch((reason) => reasons.push(reason));
});
afterEach(() => {
  stop();
  rmSync(place, { recursive: true, force: true });
});

async function waitForReason(limitMs: number): Promise<void> {
  for (const end = Date.now() + limitMs; reasons.length === 0 && Date.now() < end; ) await sleep(10);
}

const replacements: [string, string, () => void][] = [
  ["git writes its configuration, which replaces the file", ".git/config", () => git(project, "config", "x.y", "z")],
  ["the editor's directory is exchanged", ".vscode", () => {
    renameSync(join(project, ".vscode"), join(project, "v"));
    mkdirSync(join(project, ".vscode"));
  }],
  ["a mount point is removed", ".agentbox", () => rmSync(join(project, ".agentbox"), { recursive: true })],
  ["the repository is moved away", ".git", () => renameSync(join(project, ".git"), join(project, "g"))],
  ["a cover of absent settings becomes a file", ".claude/settings.json", () => {
    rmSync(join(project, ".claude/settings.json"), { recursive: true });
    writeFileSync(join(project, ".claude/settings.json"), "{}");
  }],
];

test("the box ends when a path was exchanged and put back, since the engine may have mounted in between", async () => {
  renameSync(join(project, ".vscode"), join(project, "v"));
  mkdirSync(join(project, ".vscode"));
  rmSync(join(project, ".vscode"), { recursive: true });
  renameSync(join(project, "v"), join(project, ".vscode"));
  await waitForReason(900);
  expect(reasons).toEqual([expect.stringContaining(".vscode")]);
  expect(workspace.close()).toEqual([]);
});

test.each(replacements)("the box ends when %s", async (_name, path, replace) => {
  replace();
  await waitForReason(900);
  expect(reasons).toHaveLength(1);
  expect(reasons[0]).toContain(JSON.stringify(join(project, path)));
  await sleep(60);
  expect(reasons).toHaveLength(1);
  expect(workspace.close().join()).toContain(join(project, path));
});

test("work in the project and changes in place do not end it, but a change in place is told at the end", async () => {
  writeFileSync(join(project, "file"), "x");
  git(project, "add", ".");
  git(project, "commit", "-q", "-m", "x");
  appendFileSync(join(project, ".git/config"), "# note\n");
  await waitForReason(1300);
  expect(reasons).toEqual([]);
  expect(workspace.close()).toEqual([expect.stringContaining(".git/config")]);
});

test("a configuration that the host's user changed meanwhile is no surprise", async () => {
  writeFileSync(join(project, ".agentbox/config.toml"), "[network]\n");
  await waitForReason(300);
  expect(reasons).toEqual([]);
  expect(workspace.close()).toEqual([]);
});

test("a session in which nothing protected changed ends without a word", () => {
  expect(workspace.close()).toEqual([]);
});
