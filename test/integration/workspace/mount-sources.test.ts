import { lstatSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Mount } from "../../../cli/mount.ts";
import { readWorkspace } from "../../../cli/workspace/facts.ts";
import { listMountPointSessions } from "../../../cli/workspace/mount-points.ts";
import { identifySources, requireUnchanged } from "../../../cli/workspace/mount-sources.ts";
import { planWorkspace, type WorkspacePlan } from "../../../cli/workspace/plan.ts";
import { openWorkspace } from "../../../cli/workspace/workspace.ts";
import { FirewallError } from "../../../policy/errors.ts";
import { makeDirectory } from "./box.ts";

let place: string;
let project: string;
let secret: string;

beforeEach(() => {
  place = makeDirectory();
  project = join(place, "project");
  secret = join(place, "secret");
  for (const path of [project, secret]) mkdirSync(path);
  for (const base of [join(project, "sub"), secret]) mkdirSync(join(base, "hooks"), { recursive: true });
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function bind(...names: string[]): Mount[] {
  return names.map((name) => ({ kind: "bind", source: join(project, name), target: join(project, name), readOnly: true }));
}

function exchange(name: string, make: (path: string) => void): void {
  renameSync(join(project, name), join(place, "old"));
  make(join(project, name));
}

describe("what a box mounts", () => {
  test("is known by device and inode, and what is missing is left out", () => {
    const { dev, ino } = lstatSync(join(project, "sub"), { bigint: true });
    expect(identifySources(bind("sub", "nothing"))).toEqual([{ target: join(project, "sub"), device: String(dev), inode: String(ino) }]);
  });

  test("is unchanged when only its content is", () => {
    const sources = identifySources(bind("sub"));
    writeFileSync(join(project, "sub/file"), "");
    expect(() => requireUnchanged(sources)).not.toThrow();
  });

  const swaps: [string, string, (path: string) => void, RegExp][] = [
    ["a link", "sub/hooks", (path) => symlinkSync(secret, path), /sub\/hooks" was replaced.*it is a link/],
    ["another directory", "sub/hooks", (path) => mkdirSync(path), /is another file/],
    ["nothing", "sub/hooks", () => {}, /is gone/],
    ["what a link on the way leads to", "sub", (path) => symlinkSync(secret, path), /has a link on the way/],
  ];
  test.each(swaps)("is refused when it became %s", (_name, at, make, said) => {
    const sources = identifySources(bind("sub/hooks"));
    exchange(at, make);
    expect(() => requireUnchanged(sources)).toThrow(FirewallError);
    expect(() => requireUnchanged(sources)).toThrow(said);
  });

  test("is refused at once when a link leads to it already", () => {
    exchange("sub", (path) => symlinkSync(secret, path));
    expect(() => identifySources(bind("sub", "sub/hooks"))).toThrow(/"[^"]*sub" was replaced[^]*"[^"]*sub\/hooks" was replaced/);
  });
});

describe("a workspace", () => {
  test("knows every mount, the mount points that it made among them", async () => {
    const query = await plan();
    const workspace = openWorkspace({ ...query, planned: identifySources(query.plan.mounts) });
    expect(workspace.sources.map(({ target }) => target)).toEqual(workspace.mounts.map(({ target }) => target));
    expect(workspace.sources.map(({ target }) => target)).toContain(join(project, ".vscode"));
    workspace.close();
  });

  test("is not opened when the project was exchanged after the plan, and leaves no mount point", async () => {
    const query = await plan();
    const planned = identifySources(query.plan.mounts);
    renameSync(project, join(place, "old"));
    mkdirSync(project);
    expect(() => openWorkspace({ ...query, planned })).toThrow(FirewallError);
    expect(readdirSync(project)).toEqual([]);
    expect(listMountPointSessions(query.stateDir)).toEqual([]);
  });

  test("makes no mount point behind a link that was planted after the plan", async () => {
    mkdirSync(join(project, ".claude"));
    const query = await plan();
    exchange(".claude", (path) => symlinkSync(secret, path));
    expect(() => openWorkspace(query)).toThrow(/settings/);
    expect(readdirSync(secret)).toEqual(["hooks"]);
  });
});

async function plan(): Promise<{ plan: WorkspacePlan; stateDir: string; session: string }> {
  const stateDir = join(place, "state");
  const facts = await readWorkspace({ cwd: project, addDirs: [], home: join(place, "home"), stateDir, installation: "/opt/agentbox", env: {} });
  return { plan: planWorkspace({ facts, yesSecrets: false, writable: [] }), stateDir, session: "one" };
}
