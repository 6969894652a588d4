import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GuardError } from "../../../sandbox/errors.ts";
import { Quota, type QuotaLimits } from "../../../sandbox/quota.ts";
import { countHandles, type GuardedTree, makeGuardedTree, outcomeOf, session } from "./guarded-tree.ts";

let tree: GuardedTree;
let handlesBefore: number;

beforeEach(() => {
  handlesBefore = countHandles();
  tree = makeGuardedTree();
  mkdirSync(join(tree.root, "dir"));
  writeFileSync(join(tree.root, "file.txt"), "old");
});
afterEach(async () => {
  await tree.end();
  if (countHandles() !== handlesBefore) throw new Error("a handle was left open");
});

const inRoot = (path: string) => `${tree.root}/${path}`;
const locate = (path: string, intent: "read" | "write" | "create" | "delete" | "list") => tree.resolver.locate({ sessionId: session, path: inRoot(path), intent });

function locateAndClose(path: string) {
  using located = locate(path, "create");
  return located;
}

async function limit(limits: QuotaLimits): Promise<void> {
  await tree.end();
  tree = makeGuardedTree({ driver: { quota: new Quota(() => limits) } });
}

describe("deleting, moving, making, listing", () => {
  test("files and empty directories are deleted, full ones not", async () => {
    writeFileSync(inRoot("dir/inner"), "x");
    expect(await outcomeOf(() => tree.remove(inRoot("dir")))).toBe("ENOTEMPTY");
    await tree.remove(inRoot("dir/inner"));
    await tree.remove(inRoot("dir/"));
    await tree.remove(inRoot("file.txt"));
    expect(readdirSync(tree.root)).toEqual([]);
    expect(await outcomeOf(() => tree.remove(inRoot("file.txt")))).toBe("ENOENT");
  });

  test("what takes the place of a judged file is not deleted for it", async () => {
    using located = locate("file.txt", "delete");
    unlinkSync(inRoot("file.txt"));
    writeFileSync(inRoot("file.txt"), "precious");
    expect(await outcomeOf(() => tree.driver.delete(located))).toBe("link");
    expect(readFileSync(inRoot("file.txt"), "utf8")).toBe("precious");
  });

  test("a file moves to a free name, and replaces another only where that was judged", async () => {
    writeFileSync(inRoot("dir/taken"), "precious");
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("dir/taken")))).toBe("EEXIST");
    expect(readFileSync(inRoot("dir/taken"), "utf8")).toBe("precious");
    await tree.move(inRoot("file.txt"), inRoot("dir/free"));
    expect(lstatSync(inRoot("dir/free")).nlink).toBe(1);
    await tree.move(inRoot("dir/free"), inRoot("dir/taken"), { overwrite: true });
    expect(readdirSync(inRoot("dir"))).toEqual(["taken"]);
    expect(readFileSync(inRoot("dir/taken"), "utf8")).toBe("old");
  });

  test("a name that is taken after it was judged free is not replaced", async () => {
    const { source, destination } = tree.resolver.locateMove({ sessionId: session, path: inRoot("file.txt"), destinationPath: inRoot("free"), intent: "move" });
    writeFileSync(inRoot("free"), "somebody was faster");
    expect(await outcomeOf(() => tree.driver.move(source, destination, { overwrite: true }))).toBe("EEXIST");
    source.close();
    destination.close();
    expect(readFileSync(inRoot("free"), "utf8")).toBe("somebody was faster");
    expect(existsSync(inRoot("file.txt"))).toBe(true);
  });

  test("a directory moves with its contents, to a free name only, and not into itself", async () => {
    writeFileSync(inRoot("dir/inner"), "x");
    mkdirSync(inRoot("taken"));
    expect(await outcomeOf(() => tree.move(inRoot("dir"), inRoot("taken")))).toBe("EEXIST");
    expect(await outcomeOf(() => tree.move(inRoot("dir"), inRoot("dir/below")))).toBe("EINVAL");
    await tree.move(inRoot("dir"), inRoot("taken/dir"));
    expect(await tree.list(tree.root, true)).toEqual(["file.txt", "taken", "taken/dir", "taken/dir/inner"]);
  });

  test.each([false, true])("nothing replaces itself, whether it may replace or not (%s)", async (overwrite) => {
    for (const to of ["file.txt", "dir/../file.txt", ".//file.txt"]) expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot(to), { overwrite }))).toBe("EINVAL");
    expect(readFileSync(inRoot("file.txt"), "utf8")).toBe("old");
  });

  test("a path with a trailing slash means a directory, there or not", async () => {
    expect(await outcomeOf(() => tree.write(inRoot("new/"), "x"))).toBe("EISDIR");
    expect(await outcomeOf(() => tree.write(inRoot("new/"), "x", "create"))).toBe("EISDIR");
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("new/")))).toBe("ENOTDIR");
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("dir/")))).toBe("EEXIST");
    using made = locate("new/", "create");
    expect([made.wantsDirectory, locateAndClose("new2").wantsDirectory]).toEqual([true, false]);
    await tree.driver.createDirectory(made);
    await tree.move(inRoot("new/"), inRoot("newer/"));
    expect(readdirSync(tree.root).toSorted()).toEqual(["dir", "file.txt", "newer"]);
  });

  test("a trailing slash makes no deletion of a link one of what it leads to", async () => {
    symlinkSync("dir", inRoot("l"));
    for (const attempt of [() => tree.remove(inRoot("l/")), () => tree.move(inRoot("l/"), inRoot("m"))]) expect(await outcomeOf(attempt)).toBe("ENOTDIR");
    expect(existsSync(inRoot("dir"))).toBe(true);
    expect(await tree.list(inRoot("l/"))).toEqual([]);
  });

  test("a directory that may be entered and not read has its files all the same", async () => {
    for (const place of [tree.place, tree.root]) chmodSync(place, 0o755);
    writeFileSync(inRoot("dir/old.txt"), "old");
    chmodSync(inRoot("dir"), 0o333);
    const own = process.geteuid?.();
    process.seteuid?.(1234);
    try {
      expect(await outcomeOf(() => tree.list(inRoot("dir")))).toBe("EACCES");
      expect(await tree.read(inRoot("dir/old.txt"))).toBe("old");
      expect(await outcomeOf(() => tree.write(inRoot("dir/new.txt"), "new", "create"))).toBe("done");
      await tree.driver.settle();
    } finally {
      process.seteuid?.(own ?? 0);
    }
    expect(readFileSync(inRoot("dir/new.txt"), "utf8")).toBe("new");
  });

  test("a directory is made where the name is free", async () => {
    using located = locate("made", "create");
    await tree.driver.createDirectory(located);
    expect(await outcomeOf(() => tree.driver.createDirectory(located))).toBe("EEXIST");
    expect(statSync(inRoot("made")).isDirectory()).toBe(true);
  });

  test("a list is bounded, and tells that there is more", async () => {
    for (let at = 0; at < 20; at += 1) writeFileSync(inRoot(`dir/${at}`), "12345");
    using located = locate("dir", "list");
    const { entries, truncated } = await tree.driver.list(located, { recursive: false, limit: 5 });
    expect([entries.length, truncated]).toEqual([5, true]);
    expect(entries[0]).toMatchObject({ kind: "file", size: 5 });
    expect(await tree.driver.list(located, { recursive: false, limit: 20 })).toMatchObject({ truncated: false });
  });

  test("two names of one file are one name after the move", async () => {
    linkSync(inRoot("file.txt"), inRoot("twin"));
    await tree.move(inRoot("file.txt"), inRoot("twin"), { overwrite: true });
    expect(readdirSync(tree.root).toSorted()).toEqual(["dir", "twin"]);
  });

  test("reading after the end of what was located is a bug, not another file", async () => {
    const located = locate("file.txt", "read");
    located.close();
    await expect(tree.driver.read(located)).rejects.toThrow("closed before it was used");
  });
});

describe("quotas", () => {
  test("bytes are counted before each piece, and what was half written is gone", async () => {
    await limit({ bytes: 1_000_000 });
    let sent = 0;
    async function* endless() {
      for (;;) {
        sent += 100_000;
        yield Buffer.alloc(100_000);
      }
    }
    expect(await outcomeOf(() => tree.write(inRoot("endless"), endless()))).toBe("quota");
    expect(sent).toBe(1_100_000);
    expect(readdirSync(tree.root)).toEqual([]);
    expect(await outcomeOf(() => tree.write(inRoot("fits"), Buffer.alloc(1_000_000)))).toBe("done");
    expect(await outcomeOf(() => tree.write(inRoot("more"), "x"))).toBe("quota");
  });

  test("files are counted, directories too, replaced ones as well", async () => {
    await limit({ files: 3 });
    await tree.write(inRoot("one"), "1");
    await tree.write(inRoot("one"), "2");
    using located = tree.resolver.locate({ sessionId: session, path: inRoot("made"), intent: "create" });
    await tree.driver.createDirectory(located);
    expect(await outcomeOf(() => tree.write(inRoot("two"), "2"))).toBe("quota");
    expect(existsSync(inRoot("two"))).toBe(false);
  });

  test("a session's quota is its own", () => {
    const quota = new Quota((sessionId) => ({ files: sessionId === "small" ? 1 : 2 }));
    quota.take("small", { bytes: 0, files: 1 });
    expect(() => quota.take("small", { bytes: 0, files: 1 })).toThrow(GuardError);
    quota.take("large", { bytes: 0, files: 2 });
    expect(quota.usedBy("large")).toEqual({ bytes: 0, files: 2 });
  });
});
