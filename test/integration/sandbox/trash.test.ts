import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { everything, type GuardedTree, makeGuardedTree, outcomeOf, session } from "./guarded-tree.ts";

let tree: GuardedTree;
let now: number;

beforeEach(() => {
  now = Date.UTC(2026, 0, 1);
  tree = makeGuardedTree({ spec: { trash: true }, driver: { trash: { entries: 3, bytes: 1000 }, now: () => now } });
  mkdirSync(join(tree.root, "dir"));
  writeFileSync(join(tree.root, "dir/file.txt"), "old");
});
afterEach(() => tree.end());

const inRoot = (path: string) => `${tree.root}/${path}`;

async function remove(path: string): Promise<string> {
  now += 1;
  const trashId = await tree.remove(inRoot(path));
  if (trashId === undefined) throw new Error("it was deleted, not put into the trash");
  return trashId;
}

async function restore(trashId: string): Promise<void> {
  const path = tree.driver.originOf(tree.grant, trashId);
  using destination = tree.resolver.locate({ sessionId: session, path, intent: "create" });
  await tree.driver.restore(trashId, destination);
}

describe("a grant with a trash", () => {
  test("deletes a file so that it comes back where it was", async () => {
    const trashId = await remove("dir/file.txt");
    expect(existsSync(inRoot("dir/file.txt"))).toBe(false);
    expect(tree.driver.trashed(tree.grant)).toEqual([
      { version: 1, trashId, path: "dir/file.txt", kind: "file", size: 3, deletedAt: "2026-01-01T00:00:00.001Z" },
    ]);
    await restore(trashId);
    expect(readFileSync(inRoot("dir/file.txt"), "utf8")).toBe("old");
    expect(readdirSync(inRoot(".agentbox-trash"))).toEqual([]);
    expect(await outcomeOf(() => restore(trashId))).toBe("ENOENT");
  });

  test("links and empty directories come back too, as what they were", async () => {
    symlinkSync("dir/file.txt", inRoot("l"));
    mkdirSync(inRoot("empty"));
    for (const name of ["l", "empty"]) await restore(await remove(name));
    expect(lstatSync(inRoot("l")).isSymbolicLink()).toBe(true);
    expect(lstatSync(inRoot("empty")).isDirectory()).toBe(true);
    expect(await outcomeOf(() => tree.remove(inRoot("dir")))).toBe("ENOTEMPTY");
  });

  test("a name that is taken again is not replaced by what comes back", async () => {
    const trashId = await remove("dir/file.txt");
    writeFileSync(inRoot("dir/file.txt"), "new");
    expect(await outcomeOf(() => restore(trashId))).toBe("EEXIST");
    rmSync(inRoot("dir/file.txt"));
    await restore(trashId);
    expect(readFileSync(inRoot("dir/file.txt"), "utf8")).toBe("old");
  });

  test("keeps as many deletions as it may, and loses the oldest", async () => {
    const ids: string[] = [];
    for (const name of ["1", "2", "3", "4"]) {
      writeFileSync(inRoot(name), name);
      ids.push(await remove(name));
    }
    expect(tree.driver.trashed(tree.grant).map(({ path }) => path)).toEqual(["2", "3", "4"]);
    expect(readdirSync(inRoot(".agentbox-trash"))).toHaveLength(6);
    expect(await outcomeOf(() => restore(ids[0] ?? ""))).toBe("ENOENT");
  });

  test("keeps as many bytes as it may, and the newest deletion in any case", async () => {
    const kept: string[][] = [];
    for (const [name, size] of [["1", 600], ["2", 600], ["3", 5000]] as const) {
      writeFileSync(inRoot(name), Buffer.alloc(size));
      await remove(name);
      kept.push(tree.driver.trashed(tree.grant).map(({ path }) => path));
    }
    expect(kept).toEqual([["1"], ["2"], ["3"]]);
  });

  test("without a trash in the grant a deletion is final", async () => {
    tree.grants.add({ sessionId: session, root: tree.root, access: everything });
    expect(await tree.remove(inRoot("dir/file.txt"))).toBeUndefined();
    expect(existsSync(inRoot(".agentbox-trash"))).toBe(false);
  });
});

describe("an agent with a shell", () => {
  test("who plants a link as the trash takes nothing out of the root", async () => {
    symlinkSync(tree.outside, inRoot(".agentbox-trash"));
    expect(await outcomeOf(() => tree.remove(inRoot("dir/file.txt")))).toBe("link");
    expect(readFileSync(inRoot("dir/file.txt"), "utf8")).toBe("old");
  });

  test.each([
    ["outside of the root", "../outside/planted", "outside-roots"],
    ["in an absolute place", "/etc/planted", "ENOENT"],
    ["in the configuration", ".agentbox/config.toml", "hidden"],
    ["through a link", "l/planted", "link"],
  ])("who forges a note brings nothing back %s", async (_name, path, refusal) => {
    symlinkSync(tree.outside, inRoot("l"));
    const trashId = await remove("dir/file.txt");
    const note = inRoot(`.agentbox-trash/${trashId}.json`);
    writeFileSync(note, JSON.stringify({ ...JSON.parse(readFileSync(note, "utf8")), path }));
    expect(await outcomeOf(() => restore(trashId))).toBe(refusal);
  });

  test.each([
    ["no JSON", (note: string) => writeFileSync(note, "{")],
    ["another form", (note: string) => writeFileSync(note, '{"version":2}')],
    ["too large", (note: string) => writeFileSync(note, readFileSync(note, "utf8") + " ".repeat(70_000))],
    ["a link to a file outside", (note: string) => {
      rmSync(note);
      symlinkSync("/etc/passwd", note);
    }],
  ])("who leaves a note that is %s loses the deletion, and nothing is read for it", async (_name, spoil) => {
    const trashId = await remove("dir/file.txt");
    spoil(inRoot(`.agentbox-trash/${trashId}.json`));
    expect(tree.driver.trashed(tree.grant)).toEqual([]);
    expect(await outcomeOf(() => restore(trashId))).toBe("ENOENT");
  });

  test.each(["../dir/file.txt", "", "x", "0000000000001-000000000000-1/../../dir/file.txt"])("no id leads out of the trash: %s", async (trashId) => {
    expect(await outcomeOf(() => restore(trashId))).toBe("ENOENT");
  });
});
