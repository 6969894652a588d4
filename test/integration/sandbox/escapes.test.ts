import { execFileSync } from "node:child_process";
import { existsSync, linkSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CANARY, countHandles, everything, type GuardedTree, makeGuardedTree, outcomeOf, session, takeSnapshot } from "./guarded-tree.ts";

let tree: GuardedTree;
let outsideBefore: string;
let handlesBefore: number;

beforeEach(() => {
  handlesBefore = countHandles();
  tree = makeGuardedTree();
  mkdirSync(join(tree.root, "a/b"), { recursive: true });
  writeFileSync(join(tree.root, "a/b/file.txt"), "inside");
  outsideBefore = takeSnapshot(tree.outside);
});
afterEach(async () => {
  if (takeSnapshot(tree.outside) !== outsideBefore) throw new Error("something outside of the root was changed");
  await tree.end();
  if (countHandles() !== handlesBefore) throw new Error("a handle was left open");
});

/** Not `join`, which would resolve the dots that are tested. */
const inRoot = (path: string) => `${tree.root}/${path}`;

describe("paths that lead nowhere but out", () => {
  test.each([
    ["a file beside the root", (t: GuardedTree) => `${t.outside}/canary.txt`, "outside-roots"],
    ["two dots from the root", (t: GuardedTree) => `${t.root}/../outside/canary.txt`, "outside-roots"],
    ["two dots from a directory that exists", (t: GuardedTree) => `${t.root}/a/b/../../../outside/canary.txt`, "outside-roots"],
    ["two dots that come back into the root", (t: GuardedTree) => `${t.root}/../root/a/b/file.txt`, "outside-roots"],
    ["a directory whose name begins like the root", (t: GuardedTree) => `${t.root}-not/x`, "outside-roots"],
    ["a relative path with two dots", () => "../outside/canary.txt", "outside-roots"],
    ["percent-encoded dots, which are a name", (t: GuardedTree) => `${t.root}/%2e%2e/outside/canary.txt`, "ENOENT"],
    ["full-width dots, which are a name", (t: GuardedTree) => `${t.root}/．．/outside/canary.txt`, "ENOENT"],
    ["backslashes, which are letters", (t: GuardedTree) => `${t.root}\\..\\outside\\canary.txt`, "outside-roots"],
    ["a NUL behind a good name", (t: GuardedTree) => `${t.root}/a/b/file.txt\0.png`, "malformed-path"],
    ["a lone surrogate", (t: GuardedTree) => `${t.root}/\ud800`, "malformed-path"],
    ["a name of 256 bytes", (t: GuardedTree) => `${t.root}/${"n".repeat(256)}`, "malformed-path"],
    ["a name of 128 letters of two bytes", (t: GuardedTree) => `${t.root}/${"ä".repeat(128)}`, "malformed-path"],
    ["a path of more than 4095 bytes", (t: GuardedTree) => `${t.root}${"/abcdefgh".repeat(500)}`, "malformed-path"],
    ["two dots behind something that is missing", (t: GuardedTree) => `${t.root}/missing/../a/b/file.txt`, "ENOENT"],
    ["two dots behind a file", (t: GuardedTree) => `${t.root}/a/b/file.txt/../file.txt`, "ENOTDIR"],
    ["a trailing slash on a file", (t: GuardedTree) => `${t.root}/a/b/file.txt/`, "ENOTDIR"],
    ["a trailing dot component on a file", (t: GuardedTree) => `${t.root}/a/b/file.txt/.`, "ENOTDIR"],
    ["a directory", (t: GuardedTree) => `${t.root}/a`, "special-file"],
  ])("%s is refused", async (_name, path, refusal) => {
    expect(await outcomeOf(() => tree.read(path(tree)))).toBe(refusal);
    expect(await outcomeOf(() => tree.write(path(tree), "planted"))).toBe(refusal);
  });

  test("a name cannot speak to the terminal of whoever reads the refusal", () => {
    const path = `${tree.root}/\u001b]0;forged\u0007\u202e/x`;
    expect(() => tree.resolver.locate({ sessionId: session, path, intent: "read" })).toThrow(/\\u001b.*forged\\u0007\\u202e/);
  });

  test("the root itself is no file, and no session changes it", async () => {
    expect(await outcomeOf(() => tree.read(tree.root))).toBe("special-file");
    for (const path of [tree.root, `${tree.root}/`, `${tree.root}/a/..`]) {
      expect(await outcomeOf(() => tree.write(path, "x"))).toBe("not-granted");
      expect(await outcomeOf(() => tree.remove(path))).toBe("not-granted");
      expect(await outcomeOf(() => tree.move(path, `${tree.root}/b`))).toBe("not-granted");
    }
  });

  test.each([
    ["as it stands", "a/b/file.txt"],
    ["with empty components", "a//b///file.txt"],
    ["with dots", "./a/./b/file.txt"],
    ["with two dots inside the root", "a/b/../b/file.txt"],
  ])("a path %s is the same file", async (_name, path) => {
    expect(await tree.read(`${tree.root}/${path}`)).toBe("inside");
    expect(await tree.read(path)).toBe("inside");
  });
});

describe("links", () => {
  test.each([
    ["a link to a file outside", "l", (t: GuardedTree) => `${t.outside}/canary.txt`, "l"],
    ["a relative link to a file outside", "l", () => "../outside/canary.txt", "l"],
    ["a link to a directory outside", "l", (t: GuardedTree) => t.outside, "l/canary.txt"],
    ["a relative link that climbs out and comes back", "l", () => "../root/a/b/file.txt", "l"],
    ["a link to the whole file system", "l", () => "/", "l/etc/passwd"],
    ["a link to /proc/self/root", "l", () => "/proc/self/root", "l/etc/passwd"],
    ["a link to a handle of this process", "l", () => "/proc/self/fd/0", "l"],
    ["a link to /dev/null", "l", () => "/dev/null", "l"],
    ["a link with a root's name as a mere beginning", "l", (t: GuardedTree) => `${t.root}/../outside/canary.txt`, "l"],
    ["a link to itself", "l", () => "l", "l"],
  ])("%s is not followed", async (_name, name, target, path) => {
    symlinkSync(target(tree), inRoot(name));
    expect(await outcomeOf(() => tree.read(inRoot(path)))).toBe("link");
    expect(await outcomeOf(() => tree.write(inRoot(path), "planted"))).toBe("link");
    expect(await outcomeOf(() => tree.write(inRoot(`${name}/new`), "planted"))).toBe("link");
  });

  test.each(["read", "write", "delete"] as const)("a directory that was known becomes a link: nothing behind it is even located (%s)", async (intent) => {
    mkdirSync(inRoot("sub"));
    writeFileSync(inRoot("sub/canary.txt"), "inside");
    const locate = () => tree.resolver.locate({ sessionId: session, path: inRoot("sub/canary.txt"), intent }).close();
    expect([await outcomeOf(locate), await outcomeOf(locate)]).toEqual(["done", "done"]);
    renameSync(inRoot("sub"), inRoot("sub.old"));
    symlinkSync(join(tree.outside, "sub"), inRoot("sub"));
    expect(await outcomeOf(locate)).toBe("link");
  });

  test("two dots behind a link mean the parent of where it leads, as for the kernel", async () => {
    symlinkSync("a/b", inRoot("l"));
    writeFileSync(inRoot("a/beside.txt"), "beside b");
    expect(await tree.read(inRoot("l/../beside.txt"))).toBe("beside b");
    expect(readFileSync(inRoot("l/../beside.txt"), "utf8")).toBe("beside b");
    expect(await outcomeOf(() => tree.read(inRoot("l/../../../outside/canary.txt")))).toBe("link");
  });

  test.each([
    ["a relative link", () => "a/b/file.txt"],
    ["an absolute link", (t: GuardedTree) => `${t.root}/a/b/file.txt`],
    ["a link with two dots inside the root", () => "a/b/../b/file.txt"],
  ])("%s to a place in the root is followed, and the place is what is judged", async (_name, target) => {
    symlinkSync(target(tree), inRoot("l"));
    expect(await tree.read(inRoot("l"))).toBe("inside");
    using located = tree.resolver.locate({ sessionId: session, path: inRoot("l"), intent: "write" });
    expect(located.path).toBe(inRoot("a/b/file.txt"));
    await tree.driver.write(located, "changed");
    expect(lstatSync(inRoot("l")).isSymbolicLink()).toBe(true);
    expect(readFileSync(inRoot("a/b/file.txt"), "utf8")).toBe("changed");
  });

  test("a link to a hidden place is hidden", async () => {
    mkdirSync(inRoot(".ssh"));
    writeFileSync(inRoot(".ssh/key"), "secret");
    symlinkSync(".ssh/key", inRoot("l"));
    expect(await outcomeOf(() => tree.read(inRoot("l")))).toBe("hidden");
  });

  test("forty links in a row are followed, and no more", async () => {
    symlinkSync("a/b/file.txt", inRoot("l1"));
    for (let at = 2; at <= 41; at += 1) symlinkSync(`l${at - 1}`, inRoot(`l${at}`));
    expect(await tree.read(inRoot("l40"))).toBe("inside");
    expect(await outcomeOf(() => tree.read(inRoot("l41")))).toBe("link");
  });

  test("deleting and renaming mean the link itself, wherever it leads", async () => {
    symlinkSync(join(tree.outside, "canary.txt"), inRoot("l"));
    await tree.move(inRoot("l"), inRoot("m"));
    expect(lstatSync(inRoot("m")).isSymbolicLink()).toBe(true);
    await tree.remove(inRoot("m"));
    expect(existsSync(inRoot("m"))).toBe(false);
  });

  test("a link is not listed as what it leads to, nor entered", async () => {
    symlinkSync(tree.outside, inRoot("l"));
    expect(await tree.list(tree.root, true)).toEqual(["a", "a/b", "a/b/file.txt", "l"]);
    expect(await outcomeOf(() => tree.list(inRoot("l")))).toBe("ENOTDIR");
    expect(await outcomeOf(() => tree.list(`${inRoot("l")}/`))).toBe("link");
  });

  test("a file is not created through a link, and a dangling one is no free name", async () => {
    symlinkSync(join(tree.outside, "planted"), inRoot("dangling"));
    expect(await outcomeOf(() => tree.write(inRoot("dangling"), "planted", "create"))).toBe("EEXIST");
    expect(await outcomeOf(() => tree.write(inRoot("dangling"), "planted"))).toBe("link");
    expect(await outcomeOf(() => tree.write(inRoot("free"), "fine", "create"))).toBe("done");
  });
});

describe("what is no regular file", () => {
  test("a FIFO is refused and blocks nobody", async () => {
    execFileSync("mkfifo", [inRoot("pipe")]);
    for (const operate of [() => tree.read(inRoot("pipe")), () => tree.write(inRoot("pipe"), "x"), () => tree.remove(inRoot("pipe"))]) {
      expect(await outcomeOf(operate)).toBe("special-file");
    }
  });

  test("a device is refused without being opened", async () => {
    execFileSync("mknod", [inRoot("device"), "c", "1", "3"]);
    expect(await outcomeOf(() => tree.read(inRoot("device")))).toBe("special-file");
    expect(await outcomeOf(() => tree.write(inRoot("device"), "x"))).toBe("special-file");
  });

  test("a socket is refused", async () => {
    const server = createServer().listen(inRoot("socket"));
    await new Promise((resolve) => server.once("listening", resolve));
    expect(await outcomeOf(() => tree.read(inRoot("socket")))).toBe("special-file");
    server.close();
    await new Promise((resolve) => server.once("close", resolve));
  });

  test("proc mounted below a root is the kernel's, and its links lead nowhere", async () => {
    mkdirSync(inRoot("proc"));
    execFileSync("mount", ["-t", "proc", "proc", inRoot("proc")]);
    try {
      expect(await outcomeOf(() => tree.read(inRoot("proc/version")))).toBe("special-file");
      expect(await outcomeOf(() => tree.read(inRoot("proc/self/root/etc/passwd")))).toBe("link");
      expect(await outcomeOf(() => tree.read(inRoot(`proc/self/root${tree.root}/a/b/file.txt`)))).toBe("link");
      expect(await outcomeOf(() => tree.read(inRoot(`proc/${process.pid}/fd/0`)))).toMatch(/^(?:link|special-file)$/);
    } finally {
      execFileSync("umount", [inRoot("proc")]);
    }
  });
});

describe("hard links", () => {
  test("a second name of a file outside gives nothing away, and takes nothing", async () => {
    linkSync(join(tree.outside, "canary.txt"), inRoot("notes"));
    try {
      expect(await outcomeOf(() => tree.read(inRoot("notes")))).toBe("hard-link");
      expect(await outcomeOf(() => tree.write(inRoot("notes"), "planted"))).toBe("hard-link");
      expect(readFileSync(join(tree.outside, "canary.txt"), "utf8")).toBe(CANARY);
      // Removing the name is how a user gets rid of it; the other name keeps its file.
      expect(await outcomeOf(() => tree.remove(inRoot("notes")))).toBe("done");
    } finally {
      rmSync(inRoot("notes"), { force: true });
    }
  });

  test("a grant with hard links reads a package store, and writing breaks the link instead of changing the store", async () => {
    writeFileSync(inRoot("a/store"), "package");
    linkSync(inRoot("a/store"), inRoot("a/b/used"));
    expect(await outcomeOf(() => tree.read(inRoot("a/b/used")))).toBe("hard-link");
    tree.grants.add({ sessionId: session, root: tree.root, access: everything, hardLinks: true });
    expect(await tree.read(inRoot("a/b/used"))).toBe("package");
    await tree.write(inRoot("a/b/used"), "own");
    expect(readFileSync(inRoot("a/store"), "utf8")).toBe("package");
  });
});

describe("a root that is exchanged", () => {
  test("for a link to elsewhere: the link is not followed", async () => {
    renameSync(tree.root, `${tree.root}.old`);
    symlinkSync(tree.outside, tree.root);
    expect(await outcomeOf(() => tree.read(inRoot("canary.txt")))).toBe("link");
    expect(await outcomeOf(() => tree.write(inRoot("planted"), "x"))).toBe("link");
    expect(await outcomeOf(() => tree.read(inRoot("a/b/file.txt")))).toBe("link");
    unlinkSync(tree.root);
    renameSync(`${tree.root}.old`, tree.root);
    expect(await tree.read(inRoot("a/b/file.txt"))).toBe("inside");
  });

  test("for another directory: neither the new nor the old one is used", async () => {
    renameSync(tree.root, `${tree.root}.old`);
    mkdirSync(join(tree.root, "a/b"), { recursive: true });
    writeFileSync(inRoot("a/b/file.txt"), "impostor");
    expect(await outcomeOf(() => tree.read(inRoot("a/b/file.txt")))).toBe("link");
    expect(await outcomeOf(() => tree.list(tree.root))).toBe("link");
  });
});
