import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readDotEnv } from "../../../cli/environment/dot-env-file.ts";
import { readEnvironment } from "../../../cli/environment/environment.ts";
import { runHostCommand } from "../../../cli/environment/host-command.ts";
import { readWorkspace } from "../../../cli/workspace/facts.ts";
import { planWorkspace, type WorkspacePlan } from "../../../cli/workspace/plan.ts";
import { initSshKey } from "../../../cli/workspace/ssh-key.ts";
import { findSshDirectory } from "../../../cli/workspace/state-mounts.ts";
import { git, makeDirectory } from "./box.ts";

let place: string;
let home: string;
let project: string;

beforeEach(() => {
  place = makeDirectory();
  home = join(place, "home");
  project = join(home, "project");
  mkdirSync(project, { recursive: true });
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

type Options = { addDirs?: string[]; yesSecrets?: boolean; env?: NodeJS.ProcessEnv };

async function plan(cwd: string, { addDirs = [], yesSecrets = false, env = {} }: Options = {}): Promise<WorkspacePlan> {
  const facts = await readWorkspace({ cwd, addDirs, home, stateDir: join(home, ".agentbox"), installation: join(home, "agentbox"), env });
  return planWorkspace({ facts, yesSecrets, writable: [] });
}

describe("directories", () => {
  test("a project reached by a link is mounted at its real path, and the notice says so", async () => {
    symlinkSync(project, join(home, "link"));
    const { project: real, notices } = await plan(join(home, "link"), { env: { PWD: join(home, "link") } });
    expect(real).toBe(project);
    expect(notices.join()).toContain("is a link");
  });

  test("every mistake of one command line is told at once", async () => {
    writeFileSync(join(home, "file"), "");
    mkdirSync(join(home, ".ssh"));
    symlinkSync("/proc", join(home, "p"));
    const wrong = plan(home, { addDirs: [join(home, "missing"), join(home, "file"), "~/.ssh", join(home, "p"), "/", "/etc", "a\nb"] });
    await expect(wrong).rejects.toThrow(/is not a directory[^]*control character|control character[^]*/);
    const text = await wrong.catch(String);
    for (const part of ["missing\" does not exist", "file\" is not a directory", "your home directory", ".ssh", "own /proc", "root of the file system", "own /etc", "control character"]) {
      expect(text).toContain(part);
    }
  });

  test("--yes-secrets opens a directory of secrets and nothing else", async () => {
    mkdirSync(join(home, ".aws"));
    await expect(plan(project, { addDirs: ["~/.aws"] })).rejects.toThrow("--yes-secrets");
    const { mounts } = await plan(project, { addDirs: ["~/.aws"], yesSecrets: true });
    expect(mounts.map(({ target }) => target)).toContain(join(home, ".aws"));
    await expect(plan(home, { yesSecrets: true })).rejects.toThrow("your home directory");
  });

  test("a directory with an engine's socket in it is refused", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(project, "docker.sock"), resolve));
    await expect(plan(project)).rejects.toThrow(/docker\.sock.*would give the agent the host/);
    await new Promise((resolve) => server.close(resolve));
  });

  test("an added directory inside the project is named once", async () => {
    mkdirSync(join(project, "sub"));
    const { roots, notices } = await plan(project, { addDirs: [join(project, "sub")] });
    expect(roots.map(({ path }) => path)).toEqual([project]);
    expect(notices.join()).toContain("in the box already");
  });
});

describe("links at protected paths are refused", () => {
  const links: [string, () => void][] = [
    [".git", () => symlinkSync("../elsewhere", join(project, ".git"))],
    [".git/hooks", () => {
      git(project, "init", "-q");
      rmSync(join(project, ".git/hooks"), { recursive: true });
      symlinkSync("../hooks", join(project, ".git/hooks"));
    }],
    [".git/commondir", () => {
      git(project, "init", "-q");
      symlinkSync("../c", join(project, ".git/commondir"));
    }],
    [".vscode", () => symlinkSync("/etc", join(project, ".vscode"))],
    [".claude", () => symlinkSync("../claude", join(project, ".claude"))],
    [".claude/settings.json", () => {
      mkdirSync(join(project, ".claude"));
      symlinkSync("../../s", join(project, ".claude/settings.json"));
    }],
  ];
  test.each(links)("%s", async (path, make) => {
    make();
    await expect(plan(project)).rejects.toThrow(`${JSON.stringify(join(project, path))} is a link, which no mount can hold in place`);
  });
});

describe("repositories elsewhere", () => {
  test("a .git file that names a directory which is no repository is refused", async () => {
    mkdirSync(join(home, ".config"));
    writeFileSync(join(project, ".git"), `gitdir: ${join(home, ".config")}\n`);
    await expect(plan(project)).rejects.toThrow("is not a repository");
  });

  test("a .git file that names somebody else's repository is refused", async () => {
    mkdirSync(join(home, "private"));
    git(join(home, "private"), "init", "-q");
    writeFileSync(join(project, ".git"), `gitdir: ${join(home, "private/.git")}\n`);
    await expect(plan(project)).rejects.toThrow("does not name this directory back");
    git(join(home, "private"), "config", "core.worktree", project);
    const { mounts } = await plan(project);
    expect(mounts).toContainEqual({ kind: "bind", source: join(home, "private/.git"), target: join(home, "private/.git"), readOnly: false });
    expect(mounts).toContainEqual({ kind: "bind", source: join(home, "private/.git/config"), target: join(home, "private/.git/config"), readOnly: true });
  });

  test("a hook that is a link into the project has its file held", async () => {
    git(project, "init", "-q");
    writeFileSync(join(project, "check.sh"), "");
    symlinkSync("../../check.sh", join(project, ".git/hooks/pre-commit"));
    expect((await plan(project)).guarded.map(({ path }) => path)).toContain(join(project, "check.sh"));
  });

  test("hooks in the project itself are refused, since it would have to be read-only", async () => {
    git(project, "init", "-q");
    git(project, "config", "core.hooksPath", ".");
    await expect(plan(project)).rejects.toThrow("would be writable, but lies in");
  });
});

describe("the .env of a project", () => {
  test("a link to a file outside is refused, since an agent may have made it", () => {
    writeFileSync(join(home, "credentials"), "key = secret\n");
    symlinkSync("../credentials", join(project, ".env"));
    expect(() => readDotEnv(project)).toThrow(/leads out of the project/);
    expect(() => readDotEnv(project)).not.toThrow(/secret/);
  });

  test("a link within the project is followed", () => {
    writeFileSync(join(project, ".env.local"), "A=1\n");
    symlinkSync(".env.local", join(project, ".env"));
    expect(readDotEnv(project)?.variables).toEqual([{ name: "A", value: "1", line: 1 }]);
  });

  test("a pipe is refused at once", async () => {
    await runHostCommand(["mkfifo", join(project, ".env")]);
    expect(() => readDotEnv(project)).toThrow(/not a plain file/);
  });

  test("every bad line is named", () => {
    writeFileSync(join(project, ".env"), "A=1\nnonsense\nB='x\n");
    expect(() => readDotEnv(project)).toThrow(/\.env:2: [^]*\.env:3: a quote/);
  });

  test("the identity comes from the project's own configuration", async () => {
    git(project, "init", "-q");
    git(project, "config", "user.name", "Ada <x>");
    git(project, "config", "user.email", "ada@example.com");
    const facts = await readEnvironment({ projectPath: project, ignoreDotEnv: true, options: [], hostEnv: {} });
    expect(facts.identity).toEqual({ name: "Ada x", email: "ada@example.com" });
  });
});

describe("ssh-init", () => {
  test("makes a key once, for the user alone, with a configuration that works in a read-only directory", async () => {
    const stateDir = join(home, ".agentbox");
    expect(findSshDirectory(stateDir)).toBeNull();
    const first = await initSshKey({ stateDir, comment: "agentbox test" });
    const again = await initSshKey({ stateDir, comment: "other" });
    expect(first).toMatchObject({ created: true, publicKey: expect.stringMatching(/^ssh-ed25519 \S+ agentbox test$/) });
    expect(again).toEqual({ ...first, created: false });
    expect(findSshDirectory(stateDir)).toBe(join(stateDir, "ssh"));
    expect(lstatSync(first.directory).mode & 0o777).toBe(0o700);
    for (const name of ["id_ed25519", "config", "known_hosts"]) expect(lstatSync(join(first.directory, name)).mode & 0o077).toBe(0);
    const { stdout } = await runHostCommand(["ssh", "-G", "-F", join(first.directory, "config"), "github.com"]);
    expect(stdout).toMatch(/^userknownhostsfile \/home\/agent\/\.cache\/ssh_known_hosts \/home\/agent\/\.ssh\/known_hosts$/m);
    expect(stdout).toMatch(/^identityfile \/home\/agent\/\.ssh\/id_ed25519$/m);
    const known = await runHostCommand(["ssh-keygen", "-l", "-f", join(first.directory, "known_hosts")]);
    expect(known.stdout).toContain("SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU");
  });

  test("keeps a key that is there and derives its public half", async () => {
    const stateDir = join(home, ".agentbox");
    const { directory, publicKey } = await initSshKey({ stateDir, comment: "c" });
    rmSync(join(directory, "id_ed25519.pub"));
    const key = readFileSync(join(directory, "id_ed25519"), "utf8");
    const again = await initSshKey({ stateDir, comment: "c" });
    expect(again.publicKey).toBe(publicKey);
    expect(readFileSync(join(directory, "id_ed25519"), "utf8")).toBe(key);
  });

  test("refuses a link in place of its directory", async () => {
    mkdirSync(join(home, ".agentbox"));
    mkdirSync(join(home, ".ssh"));
    symlinkSync("../.ssh", join(home, ".agentbox/ssh"));
    await expect(initSshKey({ stateDir: join(home, ".agentbox"), comment: "c" })).rejects.toThrow("is a link");
    expect(existsSync(join(home, ".ssh/id_ed25519"))).toBe(false);
    expect(findSshDirectory(join(home, ".agentbox"))).toBeNull();
  });
});
