import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { portableHandles } from "../../../sandbox/held-path.ts";
import { countHandles, type GuardedTree, makeGuardedTree, outcomeOf, session } from "./guarded-tree.ts";

let tree: GuardedTree;
let handlesBefore: number;

beforeEach(() => {
  handlesBefore = countHandles();
  tree = makeGuardedTree({ grants: { handles: portableHandles } });
  mkdirSync(join(tree.root, "a/b"), { recursive: true });
  writeFileSync(join(tree.root, "a/b/file.txt"), "inside");
});
afterEach(async () => {
  await tree.end();
  if (countHandles() !== handlesBefore) throw new Error("a handle was left open");
});

const inRoot = (path: string) => `${tree.root}/${path}`;

test("a system without /proc has every operation", async () => {
  expect(await tree.read(inRoot("a/b/file.txt"))).toBe("inside");
  await tree.write(inRoot("a/b/file.txt"), "changed");
  await tree.write(inRoot("a/new.txt"), Buffer.alloc(600_000, "n"), "create");
  expect(await tree.read(inRoot("a/new.txt"))).toHaveLength(600_000);
  await tree.move(inRoot("a/b"), inRoot("a/c"));
  await tree.remove(inRoot("a/new.txt"));
  symlinkSync("c/file.txt", inRoot("a/l"));
  expect(await tree.read(inRoot("a/l"))).toBe("changed");
  expect(await tree.list(tree.root, true)).toEqual(["a", "a/c", "a/c/file.txt", "a/l"]);
});

test.each([
  ["a link to a file outside", "link", (t: GuardedTree) => symlinkSync(`${t.outside}/canary.txt`, `${t.root}/x`)],
  ["a FIFO, without waking it", "special-file", (t: GuardedTree) => execFileSync("mkfifo", [`${t.root}/x`])],
  ["a second name of a file outside", "hard-link", (t: GuardedTree) => linkSync(`${t.outside}/canary.txt`, `${t.root}/x`)],
])("%s is refused there too", async (_name, refusal, make) => {
  make(tree);
  expect(await outcomeOf(() => tree.read(inRoot("x")))).toBe(refusal);
  expect(await outcomeOf(() => tree.write(inRoot("x"), "planted"))).toBe(refusal);
  expect(readFileSync(join(tree.outside, "canary.txt"), "utf8")).toContain("canary");
});

test.each(["read", "write", "delete"] as const)("a directory that becomes a link is seen, before and after the judgement (%s)", async (intent) => {
  mkdirSync(inRoot("sub"));
  writeFileSync(inRoot("sub/canary.txt"), "inside");
  const locate = () => tree.resolver.locate({ sessionId: session, path: inRoot("sub/canary.txt"), intent });
  locate().close();
  using before = locate();
  renameSync(inRoot("sub"), inRoot("sub.old"));
  symlinkSync(join(tree.outside, "sub"), inRoot("sub"));
  expect(await outcomeOf(() => locate().close())).toBe("link");
  expect(await outcomeOf(() => before.recheck())).toBe("link");
});

test("a root that is exchanged is not followed", async () => {
  renameSync(tree.root, `${tree.root}.old`);
  symlinkSync(tree.outside, tree.root);
  expect(await outcomeOf(() => tree.read(inRoot("canary.txt")))).toBe("link");
  expect(await outcomeOf(() => tree.list(tree.root))).toBe("link");
});
