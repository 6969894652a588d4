import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readDotEnv } from "../../../cli/environment/dot-env-file.ts";
import { runHostCommand } from "../../../cli/environment/host-command.ts";
import { readWorkspace } from "../../../cli/workspace/facts.ts";
import { planWorkspace, type WorkspacePlan } from "../../../cli/workspace/plan.ts";
import { readPlainFile } from "../../../cli/workspace/plain-file.ts";
import { git, makeDirectory } from "./box.ts";

// What an agent can leave in a project so that the next start does not end, or says the wrong thing.

let place: string;
let project: string;
let planted: string;

beforeEach(() => {
  place = makeDirectory();
  project = join(place, "project");
  planted = join(project, ".git/modules/m");
  mkdirSync(project);
  git(project, "init", "-q");
  for (const name of ["objects", "refs", "hooks"]) mkdirSync(join(planted, name), { recursive: true });
  writeFileSync(join(planted, "HEAD"), "ref: refs/heads/main\n");
  writeFileSync(join(planted, "config"), "[core]\n\tbare = false\n");
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

async function plan(): Promise<WorkspacePlan> {
  const facts = await readWorkspace({ cwd: project, addDirs: [], home: join(place, "home"), stateDir: join(place, "state"), installation: "/opt/agentbox", env: {} });
  return planWorkspace({ facts, yesSecrets: false, writable: [] });
}

async function makePipe(path: string): Promise<void> {
  await runHostCommand(["mkfifo", path]);
}

describe("a planted configuration", { timeout: 8_000 }, () => {
  test("that is an ordinary one is planned for", async () => {
    expect((await plan()).guarded.map(({ path }) => path)).toContain(join(planted, "config"));
  });

  test("that includes a pipe is refused at once, and both files are named", async () => {
    await makePipe(join(project, "pipe"));
    writeFileSync(join(planted, "config"), "[include]\n\tpath = ../../../pipe\n");
    await expect(plan()).rejects.toThrow(`"${join(project, "pipe")}" is a special file`);
    await expect(plan()).rejects.toThrow(`as "${join(planted, "config")}" says`);
  });

  test.each(["/dev/zero", "/dev/tty"])("that includes %s does not hold the start up, for the box cannot write there", async (path) => {
    writeFileSync(join(planted, "config"), `[include]\n\tpath = ${path}\n`);
    expect((await plan()).guarded.map((guarded) => guarded.path)).toContain(join(planted, "config"));
  });

  test("that includes a file without an end is refused at its limit", async () => {
    writeFileSync(join(planted, "config"), "[include]\n\tpath = /proc/self/pagemap\n");
    await expect(plan()).rejects.toThrow("more than 2097152 bytes");
  });

  test.each([
    ["config", "is a special file"],
    ["commondir", "is a special file"],
  ])("whose %s is a pipe is refused at once", async (name, said) => {
    rmSync(join(planted, name), { force: true });
    await makePipe(join(planted, name));
    await expect(plan()).rejects.toThrow(`"${join(planted, name)}" ${said}`);
  });

  test("that is too large to judge is refused by its name", async () => {
    writeFileSync(join(planted, "config"), `${"#".repeat(2 * 1024 * 1024)}\n[include]\n\tpath = ../../../x\n`);
    await expect(plan()).rejects.toThrow(`"${join(planted, "config")}" has more than 2097152 bytes`);
  });

  test("by which git says more than can be read is refused and not taken for an empty one", async () => {
    const name = "n".repeat(100_000);
    writeFileSync(join(project, ".gitmodules"), `[submodule "${name}"]\n${"\tpath = sub\n".repeat(100)}`);
    await expect(plan()).rejects.toThrow(/\.gitmodules" takes git too long to read, or says too much/);
  });

  test("that names the project as its hooks is named itself, with a way out", async () => {
    writeFileSync(join(planted, "config"), `[core]\n\thooksPath = ${project}\n`);
    await expect(plan()).rejects.toThrow(`git runs the hooks in it, as "${join(planted, "config")}" says; fix: correct "${join(planted, "config")}", or remove the repository`);
  });

  test("with a path that a terminal would obey is shown with its marks escaped", async () => {
    const name = "\u{9b}31m\u{202e}gnp";
    await makePipe(join(project, name));
    writeFileSync(join(planted, "config"), `[include]\n\tpath = "../../../${name}"\n`);
    const text = await plan().catch(String);
    expect(text).toContain(String.raw`\u009b31m\u202egnp`);
    expect(text).not.toMatch(/[\u{80}-\u{9f}\u{202e}]/u);
  });
});

describe("a plain file", () => {
  test("is read whole, and with it which file it is", () => {
    const text = "x".repeat(200_000);
    writeFileSync(join(place, "file"), text);
    const found = readPlainFile(join(place, "file"), text.length);
    expect("content" in found && found.content.toString()).toBe(text);
  });

  const others: [string, string, (path: string) => void | Promise<void>][] = [
    ["is missing", "missing", () => {}],
    ["is a link", "special", (path) => symlinkSync(join(place, "project/.git/HEAD"), path)],
    ["is a pipe", "special", makePipe],
    ["is a directory", "special", (path) => mkdirSync(path)],
    ["is larger than asked for", "large", (path) => writeFileSync(path, "12345")],
  ];
  test.each(others)("is not read when it %s", async (_name, flaw, make) => {
    await make(join(place, "file"));
    expect(readPlainFile(join(place, "file"), 4)).toMatchObject({ flaw });
  });

  test.runIf(process.platform === "linux")("of the kernel's, which has no size, is not read beyond the limit", () => {
    expect(readPlainFile("/proc/self/smaps", 100)).toMatchObject({ flaw: "large" });
    expect(readPlainFile("/proc/self/comm", 100)).toHaveProperty("content");
  });

  test("that a .env is not is refused by its own name", async () => {
    await makePipe(join(project, ".env"));
    expect(() => readDotEnv(project)).toThrow(/\.env: the file is not a plain file.*remove it, or add --ignore-dot-env/);
  });
});
