import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { trackRepositories } from "../../../cli/workspace/nested-repositories.ts";
import { makeDirectory } from "./box.ts";
import { hearAfter, makeRepository, passTime, planProject, plant } from "./session.ts";

let place: string;
let project: string;

beforeEach(() => {
  place = makeDirectory();
  project = join(place, "project");
  makeRepository(project);
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

const early = /^the search .* ended early, after \d+ directories: there may be more$/;

test.each([
  ["directories", { directories: 20, ms: 60_000 }],
  ["time", { directories: 50_000, ms: 0 }],
])("a search that ran out of %s says so", async (_name, limits) => {
  const report = trackRepositories(await planProject(place), limits);
  for (let at = 0; at < 30; at += 1) mkdirSync(join(project, `d${at}`));
  expect(report()).toEqual([expect.stringMatching(early)]);
});

test("outer directories come before what lies deep", async () => {
  mkdirSync(join(project, "a/b/c/d/e/f/g/h"), { recursive: true });
  await passTime();
  const report = trackRepositories({ ...(await planProject(place)), guarded: [] }, { directories: 40, ms: 60_000 });
  await passTime();
  for (let at = 0; at < 100; at += 1) mkdirSync(join(project, `a/b/c/${at}`));
  plant(join(project, "z"));
  expect(report()).toEqual([expect.stringContaining('"z/.git"'), expect.stringMatching(early)]);
});

test("paths too long to open are named, and fail nothing", async () => {
  const notices = await hearAfter(place, () => {
    const name = "n".repeat(250);
    execFileSync("sh", ["-c", `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mkdir ${name} && cd -P ${name} || exit 1; done`], { cwd: project });
    plant(join(project, "sub"));
  });
  expect(notices).toEqual([expect.stringContaining('"sub/.git"'), expect.stringMatching(/^could not look into "n{250}/)]);
  execFileSync("rm", ["-rf", project]);
});

test.runIf(process.platform === "linux")("names that are not UTF-8 are told, since nothing below them can be opened", async () => {
  const notices = await hearAfter(place, () => void execFileSync("sh", ["-c", String.raw`mkdir -p "$(printf 'bad\377')/sub"`], { cwd: project }));
  expect(notices).toEqual([expect.stringMatching(/^could not look into "bad\u{fffd}" /u)]);
  execFileSync("rm", ["-rf", project]);
});

test("a directory closed by the box is named, one that was closed before is not, and neither fails the end", () => {
  for (const name of ["old", "new"]) mkdirSync(join(project, name));
  chmodSync(join(project, "old"), 0o300);
  // Root reads everything: the search runs as somebody else.
  const nobody = { uid: 65_534, gid: 65_534 };
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [place, project, join(project, "old"), join(project, "new")]) chownSync(path, nobody.uid, nobody.gid);
  const module = join(import.meta.dirname, "../../../cli/workspace/nested-repositories.ts");
  const script = `
    import { chmodSync } from "node:fs";
    import { setTimeout as sleep } from "node:timers/promises";
    const { trackRepositories } = await import(process.argv[1]);
    const project = process.argv[2];
    await sleep(20);
    const report = trackRepositories({ project, roots: [{ path: project }], guarded: [] });
    await sleep(20);
    chmodSync(project + "/new", 0o300);
    console.log(JSON.stringify(report()));
  `;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", script, module, project], { ...(isRoot ? nobody : {}), encoding: "utf8", env: {} });
  expect(JSON.parse(output)).toEqual([expect.stringMatching(/^could not look into "new" for/)]);
});
