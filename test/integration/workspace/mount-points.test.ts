import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimMountPoints, listMountPointSessions, releaseMountPoints, type MountPoint } from "../../../cli/workspace/mount-points.ts";
import { ConfigError } from "../../../policy/errors.ts";
import { makeDirectory } from "./box.ts";

let place: string;
let stateDir: string;
let points: MountPoint[];

beforeEach(() => {
  place = makeDirectory();
  stateDir = join(place, "state");
  points = [
    { path: join(place, "outer"), kind: "directory", placeholder: "" },
    { path: join(place, "outer/inner"), kind: "directory", placeholder: "" },
    { path: join(place, "outer/file"), kind: "file", placeholder: ".\n" },
  ];
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

const claim = (session: string) => claimMountPoints({ stateDir, session, points });
const release = (session: string) => releaseMountPoints({ stateDir, session });

test("makes what is missing and removes it when the session ends", () => {
  claim("one");
  expect(readFileSync(join(place, "outer/file"), "utf8")).toBe(".\n");
  expect(existsSync(join(place, "outer/inner"))).toBe(true);
  release("one");
  expect(readdirSync(place)).toEqual(["state"]);
  expect(listMountPointSessions(stateDir)).toEqual([]);
});

test("a session that ends leaves the mount points that another one uses", () => {
  claim("one");
  claim("two");
  release("one");
  expect(existsSync(join(place, "outer/inner"))).toBe(true);
  expect(listMountPointSessions(stateDir)).toEqual(["two"]);
  release("two");
  expect(existsSync(join(place, "outer"))).toBe(false);
});

test("what a killed session left is removed by whoever releases it", () => {
  claim("killed");
  expect(listMountPointSessions(stateDir)).toEqual(["killed"]);
  release("killed");
  expect(existsSync(join(place, "outer"))).toBe(false);
});

test("releasing twice and releasing a stranger change nothing", () => {
  claim("one");
  release("stranger");
  expect(existsSync(join(place, "outer/file"))).toBe(true);
  release("one");
  release("one");
  expect(existsSync(join(place, "outer"))).toBe(false);
});

test("what existed before stays, even when it is empty", () => {
  mkdirSync(join(place, "outer"));
  claim("one");
  release("one");
  expect(readdirSync(join(place, "outer"))).toEqual([]);
});

test("a mount point that was filled meanwhile stays", () => {
  claim("one");
  writeFileSync(join(place, "outer/inner/mine"), "");
  writeFileSync(join(place, "outer/file"), "mine");
  release("one");
  expect(readdirSync(join(place, "outer")).toSorted()).toEqual(["file", "inner"]);
});

test("a mount point that the host replaced is the host's and stays", () => {
  claim("one");
  writeFileSync(join(place, "new"), ".\n");
  renameSync(join(place, "new"), join(place, "outer/file"));
  release("one");
  expect(readdirSync(join(place, "outer"))).toEqual(["file"]);
});

test("a mount point that cannot be made is refused, and the others are removed again", () => {
  writeFileSync(join(place, "blocker"), "");
  points.push({ path: join(place, "blocker/x"), kind: "directory", placeholder: "" });
  expect(() => claim("one")).toThrow(ConfigError);
  expect(readdirSync(place).toSorted()).toEqual(["blocker", "state"]);
});
