import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const launcher = path.join(import.meta.dirname, "../../../agentbox");
let root: string;
let installation: string;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "agentbox launcher "));
  installation = path.join(root, "the product");
  mkdirSync(path.join(installation, "build"), { recursive: true });
  mkdirSync(path.join(installation, "node_modules/node/bin"), { recursive: true });
  copyFileSync(launcher, path.join(installation, "agentbox"));
  symlinkSync(process.execPath, path.join(installation, "node_modules/node/bin/node"));
  writeFileSync(path.join(installation, "build/cli.mjs"), "console.log(JSON.stringify({ argv: process.argv.slice(2), cwd: process.cwd() })); process.exitCode = 7;");
});

afterEach(() => rmSync(root, { recursive: true }));

function launch(file: string, argv: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(file, argv, { cwd: root, encoding: "utf8", env: { PATH: "/usr/bin:/bin" } });
  return { status, stdout, stderr };
}

test("passes arguments, directory and exit code through unchanged", () => {
  const argv = ["a b", "", "-x", "$(y)", "new\nline"];
  const { status, stdout } = launch(path.join(installation, "agentbox"), argv);
  expect(JSON.parse(stdout)).toEqual({ argv, cwd: root });
  expect(status).toBe(7);
});

test("finds its installation through links of both kinds", () => {
  symlinkSync(path.join(installation, "agentbox"), path.join(root, "absolute"));
  mkdirSync(path.join(root, "bin"));
  symlinkSync("../absolute", path.join(root, "bin/agentbox"));
  expect(launch(path.join(root, "bin/agentbox"), []).status).toBe(7);
});

test.each([
  { name: "agentbox-setup", argv: ["--user"], passed: ["setup", "--user"] },
  { name: "agentbox-run", argv: ["--", "x y"], passed: ["--batch", "--", "x y"] },
])("called as $name it says what to do", ({ name, argv, passed }) => {
  symlinkSync("agentbox", path.join(installation, name));
  symlinkSync(path.join(installation, name), path.join(root, name));
  expect(JSON.parse(launch(path.join(root, name), argv).stdout)).toMatchObject({ argv: passed });
});

test("says what to do when the program was not built", () => {
  rmSync(path.join(installation, "build"), { recursive: true });
  const { status, stderr } = launch(path.join(installation, "agentbox"), []);
  expect(status).toBe(69);
  expect(stderr).toMatch(/build\/cli\.mjs is missing; fix: run `npm install`/);
});

test("does not run on a Node that is too old", () => {
  rmSync(path.join(installation, "node_modules"), { recursive: true });
  writeFileSync(path.join(root, "node"), '#!/bin/sh\necho 20\n', { mode: 0o755 });
  const { status, stderr } = spawnSync(path.join(installation, "agentbox"), { encoding: "utf8", env: { PATH: `${root}:/usr/bin:/bin` } });
  expect(status).toBe(69);
  expect(stderr).toMatch(/Node 24 or later is needed, this is Node 20; fix: run `npm install`/);
});

test("is plain POSIX shell", () => {
  expect(spawnSync("sh", ["-n", launcher]).status).toBe(0);
});

test("keeps the compiled program in the user's cache, all of it, and starts without a home too", () => {
  const program = path.join(path.dirname(launcher), "build/cli.mjs");
  const start = (env: Record<string, string>): string => spawnSync(process.execPath, [program, "--version"], { encoding: "utf8", env }).stdout;
  expect(start({ HOME: root })).toMatch(/^agentbox \d/);
  const cache = path.join(root, ".cache/agentbox/compile");
  const files = readdirSync(cache, { recursive: true, encoding: "utf8" }).map((name) => statSync(path.join(cache, name)));
  expect(Math.max(...files.map(({ size }) => size))).toBeGreaterThan(100_000);
  expect(start({ HOME: "not/absolute" })).toMatch(/^agentbox \d/);
  expect(existsSync("not")).toBe(false);
});
