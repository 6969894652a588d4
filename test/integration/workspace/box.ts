import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { renderMount } from "../../../cli/engine/mount-argv.ts";
import { renderGitConfig } from "../../../cli/environment/git-identity.ts";
import type { Mount } from "../../../cli/mount.ts";
import type { GitSetting } from "../../../cli/workspace/git-guards.ts";

const IMAGE = "agentbox-test-workspace:1";

/** Whether a Docker daemon of this machine answers; the tests that need one say so when they are skipped. */
export function hasDocker(): boolean {
  return process.platform === "linux" && spawnSync("docker", ["version"], { timeout: 10_000 }).status === 0;
}

/** Imports an image of nothing but links: the programs come from the host's /usr, mounted read-only. */
export function importImage(): void {
  const root = mkdtempSync(join(tmpdir(), "workspace-image-"));
  for (const name of ["bin", "sbin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(root, name));
  for (const name of ["usr", "tmp", "etc"]) mkdirSync(join(root, name));
  const tar = execFileSync("tar", ["-C", root, "-c", "."]);
  execFileSync("docker", ["import", "-", IMAGE], { input: tar, stdio: ["pipe", "ignore", "inherit"] });
  rmSync(root, { recursive: true });
}

/** Removes the image again. */
export function removeImage(): void {
  execFileSync("docker", ["image", "rm", IMAGE], { stdio: "ignore" });
}

type BoxPlan = { mounts: readonly Mount[]; gitConfig: readonly GitSetting[] };
export type BoxAnswer = { status: number | null; output: string };

/** Runs a shell script as an agent would run: the user's ids, no capability, no network, the planned mounts. */
export function runInBox({ mounts, gitConfig }: BoxPlan, cwd: string, script: string): BoxAnswer {
  const binds = mounts.flatMap((mount) => (mount.kind === "bind" ? ["--mount", renderMount(mount, [])] : []));
  const ids = `${process.getuid?.()}:${process.getgid?.()}`;
  const argv = ["run", "--rm", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"];
  const settings = Object.entries(renderGitConfig(gitConfig)).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const identity = ["AUTHOR", "COMMITTER"].flatMap((role) => ["-e", `GIT_${role}_NAME=Agent`, "-e", `GIT_${role}_EMAIL=agent@example.com`]);
  const usr = ["--mount", "type=bind,source=/usr,target=/usr,readonly", "--tmpfs", "/tmp"];
  const rest = ["-e", "HOME=/tmp", "-u", ids, "-w", cwd, ...identity, ...settings, ...usr, ...binds, IMAGE, "sh", "-c", script];
  const { status, stdout, stderr } = spawnSync("docker", [...argv, ...rest], { encoding: "utf8", timeout: 60_000 });
  return { status, output: stdout + stderr };
}

/** Makes a directory of its own with a real path. */
export function makeDirectory(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "agentbox workspace é-")));
}

/** Runs git on the host without the user's configuration. */
export function git(cwd: string, ...args: string[]): string {
  const env = {
    PATH: process.env["PATH"],
    HOME: "/nonexistent",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "Host",
    GIT_AUTHOR_EMAIL: "host@example.com",
    GIT_COMMITTER_NAME: "Host",
    GIT_COMMITTER_EMAIL: "host@example.com",
  };
  return execFileSync("git", ["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", ...args], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
