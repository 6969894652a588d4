import { createHash } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileStream } from "../../../sandbox/file-stream.ts";
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
const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

async function* pieces(count: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at += 1) yield Buffer.alloc(bytes, at);
}

async function* broken() {
  yield Buffer.alloc(500_000);
  throw new Error("the sender is gone");
}

describe("reading", () => {
  test("a small file comes whole, with its digest", async () => {
    using located = locate("file.txt", "read");
    expect(await tree.driver.read(located)).toEqual({ size: 3, content: Buffer.from("old"), digest: sha256("old") });
  });

  test("an empty file is empty", async () => {
    writeFileSync(inRoot("empty"), "");
    using located = locate("empty", "read");
    expect(await tree.driver.read(located)).toEqual({ size: 0, content: Buffer.alloc(0), digest: sha256("") });
  });

  test("a large file comes as a stream that outlives the handle, and knows its digest at the end", async () => {
    const bytes = Buffer.alloc(3_500_000, "large");
    writeFileSync(inRoot("large"), bytes);
    const located = locate("large", "read");
    const { content } = await tree.driver.read(located);
    located.close();
    if (!(content instanceof FileStream)) throw new Error("not a stream");
    expect(content.digest).toBeUndefined();
    const read: Uint8Array[] = [];
    for await (const piece of content) read.push(piece);
    expect(Buffer.concat(read).equals(bytes)).toBe(true);
    expect(content.digest).toBe(sha256(bytes));
    await expect(async () => {
      for await (const piece of content) read.push(piece);
    }).rejects.toThrow("read or closed before");
  });

  test("a stream that is left early, or never begun, gives its handle back", async () => {
    writeFileSync(inRoot("large"), Buffer.alloc(5_000_000));
    for (const leave of ["early", "unread"]) {
      using located = locate("large", "read");
      const { content } = await tree.driver.read(located);
      if (!(content instanceof FileStream)) throw new Error("not a stream");
      if (leave === "unread") content.close();
      else for await (const piece of content) if (piece.length > 0) break;
      expect(content.digest).toBeUndefined();
    }
  });

  test("what was located is what is read, though the name is another file's by now", async () => {
    using located = locate("file.txt", "read");
    unlinkSync(inRoot("file.txt"));
    writeFileSync(inRoot("file.txt"), "another file, longer");
    expect((await tree.driver.read(located)).content).toEqual(Buffer.from("old"));
  });
});

describe("writing", () => {
  test.each([0o600, 0o644, 0o755, 0o640])("a replaced file keeps its rights (%o)", async (mode) => {
    chmodSync(inRoot("file.txt"), mode);
    await tree.write(inRoot("file.txt"), "new");
    expect(statSync(inRoot("file.txt")).mode & 0o7777).toBe(mode);
    expect(readFileSync(inRoot("file.txt"), "utf8")).toBe("new");
  });

  test("a replaced file loses set-uid and keeps its owner", async () => {
    chownSync(inRoot("file.txt"), 1234, 4321);
    chmodSync(inRoot("file.txt"), 0o4755);
    await tree.write(inRoot("file.txt"), "new");
    const { uid, gid, mode } = statSync(inRoot("file.txt"));
    expect([uid, gid, mode & 0o7777]).toEqual([1234, 4321, 0o755]);
  });

  test("a new file has the usual rights, and nothing else remains", async () => {
    await tree.write(inRoot("new.txt"), "new");
    expect(statSync(inRoot("new.txt")).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(statSync(inRoot("new.txt")).nlink).toBe(1);
    expect(readdirSync(tree.root).toSorted()).toEqual(["dir", "file.txt", "new.txt"]);
  });

  test("a reader who has the old file open keeps it: contents are replaced, never rewritten", async () => {
    const before = statSync(inRoot("file.txt")).ino;
    await tree.write(inRoot("file.txt"), "new");
    expect(statSync(inRoot("file.txt")).ino).not.toBe(before);
  });

  test("a stream is written in pieces and digested on the way", async () => {
    using located = locate("stream", "create");
    const written = await tree.driver.write(located, pieces(40, 100_000));
    expect(written).toEqual({ size: 4_000_000, digest: sha256(readFileSync(inRoot("stream"))), isNew: true });
  });

  test.each([["text", "a".repeat(700_000)], ["bytes", Buffer.alloc(2_500_000, 7)]])("large %s is written whole", async (_name, content) => {
    await tree.write(inRoot("large"), content);
    expect(readFileSync(inRoot("large")).equals(Buffer.from(content))).toBe(true);
  });

  test("a stream that fails half-way leaves the old file and nothing else", async () => {
    await expect(tree.write(inRoot("file.txt"), broken())).rejects.toThrow("the sender is gone");
    expect(readFileSync(inRoot("file.txt"), "utf8")).toBe("old");
    expect(readdirSync(tree.root).toSorted()).toEqual(["dir", "file.txt"]);
  });

  test("what was missing when it was judged is not replaced when it is not missing any more", async () => {
    using located = locate("new.txt", "write");
    writeFileSync(inRoot("new.txt"), "somebody was faster");
    expect(await outcomeOf(() => tree.driver.write(located, "mine"))).toBe("EEXIST");
    expect(readFileSync(inRoot("new.txt"), "utf8")).toBe("somebody was faster");
    expect(await outcomeOf(() => tree.write(inRoot("file.txt"), "x", "create"))).toBe("EEXIST");
    expect(readdirSync(tree.root).toSorted()).toEqual(["dir", "file.txt", "new.txt"]);
  });

  test("a directory that was moved away while a human thought is not written to", async () => {
    writeFileSync(inRoot("dir/file.txt"), "old");
    using located = locate("dir/file.txt", "write");
    renameSync(inRoot("dir"), join(tree.outside, "stolen"));
    expect(await outcomeOf(() => tree.driver.write(located, "new"))).toBe("link");
    expect(readdirSync(join(tree.outside, "stolen"))).toEqual(["file.txt"]);
    expect(readFileSync(join(tree.outside, "stolen/file.txt"), "utf8")).toBe("old");
  });

  test("a link that takes the place of the file is not written through", async () => {
    using located = locate("file.txt", "write");
    unlinkSync(inRoot("file.txt"));
    symlinkSync(join(tree.outside, "canary.txt"), inRoot("file.txt"));
    expect(await outcomeOf(() => tree.driver.write(located, "planted"))).toBe("link");
    expect(readFileSync(join(tree.outside, "canary.txt"), "utf8")).toContain("canary");
  });

  test("what a killed process left is removed by the next write when it is old and ours", async () => {
    const old = [".agentbox-aaaaaaaaaaaaaaaaaaaaaaaa", ".agentbox-bbbbbbbbbbbbbbbbbbbbbbbb", ".agentbox-notes", ".agentbox-cccccccccccccccccccccccc"];
    for (const name of old) {
      writeFileSync(inRoot(`dir/${name}`), "half");
      utimesSync(inRoot(`dir/${name}`), new Date(Date.now() - 120_000), new Date(Date.now() - 120_000));
    }
    utimesSync(inRoot(`dir/${old[1]}`), new Date(), new Date());
    chownSync(inRoot(`dir/${old[3]}`), 1234, 1234);
    await tree.write(inRoot("dir/a"), "a");
    expect(readdirSync(inRoot("dir")).toSorted()).toEqual([old[1], old[3], ".agentbox-notes", "a"]);
  });

  test("many writers of one file leave one of their contents, whole", async () => {
    const contents = Array.from({ length: 50 }, (_, at) => String(at).repeat(10_000));
    await Promise.all(contents.map((content) => tree.write(inRoot("file.txt"), content)));
    expect(contents).toContain(readFileSync(inRoot("file.txt"), "utf8"));
    expect(readdirSync(tree.root).toSorted()).toEqual(["dir", "file.txt"]);
  });
});
