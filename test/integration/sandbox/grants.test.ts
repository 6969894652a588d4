import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Access } from "../../../sandbox/grant.ts";
import { everything, type GuardedTree, makeGuardedTree, outcomeOf, session } from "./guarded-tree.ts";

let tree: GuardedTree;
let now: number;

beforeEach(() => {
  now = 1000;
  tree = makeGuardedTree({ grants: { now: () => now } });
  mkdirSync(join(tree.root, "sub/deep"), { recursive: true });
  writeFileSync(join(tree.root, "file.txt"), "wide");
  writeFileSync(join(tree.root, "sub/file.txt"), "narrow");
});
afterEach(() => tree.end());

const inRoot = (path: string) => `${tree.root}/${path}`;
const readOnly = { read: true, write: false, create: false, delete: false };

describe("roots that are never granted", () => {
  test.each([
    ["the whole file system", () => "/"],
    ["proc", () => "/proc"],
    ["a directory of proc", () => `/proc/${process.pid}`],
    ["sys", () => "/sys/kernel"],
    ["dev", () => "/dev"],
    ["terminals, wherever they are mounted", () => "/dev/pts"],
    ["the guard's own directory", (t: GuardedTree) => `${t.place}/home/.agentbox`],
    ["a directory in the guard's own", (t: GuardedTree) => `${t.place}/home/.agentbox/sessions`],
    ["the home directory, which holds the guard's own", (t: GuardedTree) => `${t.place}/home`],
    ["a parent of the home directory", (t: GuardedTree) => t.place],
    ["a link to the home directory", (t: GuardedTree) => `${t.outside}/to-home`],
    ["a file", (t: GuardedTree) => `${t.root}/file.txt`],
    ["a relative path", () => "root"],
  ])("%s is refused", async (_name, root) => {
    mkdirSync(join(tree.place, "home/.agentbox/sessions"), { recursive: true });
    symlinkSync(join(tree.place, "home"), join(tree.outside, "to-home"));
    expect(await outcomeOf(() => tree.grants.add({ sessionId: "s2", root: root(tree), access: everything }))).toBe("not-granted");
    mkdirSync(join(tree.place, "home/project"));
    expect(await outcomeOf(() => tree.grants.add({ sessionId: "s2", root: join(tree.place, "home/project"), access: everything }))).toBe("done");
    tree.grants.endSession("s2");
  });

  test("a root that does not exist is the file system's refusal", async () => {
    expect(await outcomeOf(() => tree.grants.add({ sessionId: session, root: inRoot("missing"), access: everything }))).toBe("ENOENT");
  });
});

describe("rights", () => {
  const operations: [string, keyof Access, (t: GuardedTree) => Promise<unknown>][] = [
    ["reading", "read", (t) => t.read(`${t.root}/file.txt`)],
    ["listing", "read", (t) => t.list(t.root)],
    ["changing", "write", (t) => t.write(`${t.root}/file.txt`, "changed")],
    ["writing what is not there", "create", (t) => t.write(`${t.root}/new.txt`, "new")],
    ["creating", "create", (t) => t.write(`${t.root}/new.txt`, "new", "create")],
    ["deleting", "delete", (t) => t.remove(`${t.root}/file.txt`)],
  ];
  test.each(operations)("%s needs %s and nothing else", async (_name, right, operate) => {
    tree.grants.add({ sessionId: session, root: tree.root, access: { ...everything, [right]: false } });
    expect(await outcomeOf(() => operate(tree))).toBe("not-granted");
    tree.grants.add({ sessionId: session, root: tree.root, access: { read: false, write: false, create: false, delete: false, [right]: true } });
    expect(await outcomeOf(() => operate(tree))).toBe("done");
  });

  test("moving needs delete here, and create or write there", async () => {
    tree.grants.add({ sessionId: session, root: tree.root, access: { ...everything, delete: false } });
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("moved.txt")))).toBe("not-granted");
    tree.grants.add({ sessionId: session, root: tree.root, access: { ...everything, create: false } });
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("moved.txt")))).toBe("not-granted");
    tree.grants.add({ sessionId: session, root: tree.root, access: { ...everything, write: false } });
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("sub/file.txt"), { overwrite: true }))).toBe("not-granted");
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), inRoot("moved.txt")))).toBe("done");
  });
});

describe("several roots", () => {
  test("the deepest root decides, by every way that leads there", async () => {
    tree.grants.add({ sessionId: session, root: inRoot("sub"), access: readOnly });
    symlinkSync("sub/file.txt", inRoot("l"));
    expect(await tree.read(inRoot("sub/file.txt"))).toBe("narrow");
    expect(await outcomeOf(() => tree.write(inRoot("sub/file.txt"), "x"))).toBe("not-granted");
    expect(await outcomeOf(() => tree.write(inRoot("l"), "x"))).toBe("link");
    expect(await outcomeOf(() => tree.write(inRoot("./sub/../sub/file.txt"), "x"))).toBe("not-granted");
    expect(await outcomeOf(() => tree.write(inRoot("file.txt"), "x"))).toBe("done");
  });

  test("a directory that holds a root is not moved, since the root would leave its own grant", async () => {
    tree.grants.add({ sessionId: session, root: inRoot("sub/deep"), access: readOnly });
    expect(await outcomeOf(() => tree.move(inRoot("sub"), inRoot("other")))).toBe("not-granted");
    expect(await outcomeOf(() => tree.remove(inRoot("sub/deep")))).toBe("not-granted");
    mkdirSync(inRoot("plain"));
    expect(await outcomeOf(() => tree.move(inRoot("plain"), inRoot("other")))).toBe("done");
  });

  test("a recursive list does not enter another root", async () => {
    tree.grants.add({ sessionId: session, root: inRoot("sub"), access: { ...everything, read: false } });
    expect(await tree.list(tree.root, true)).toEqual(["file.txt", "sub"]);
  });

  test("nothing moves between roots, in either direction", async () => {
    mkdirSync(join(tree.place, "second"));
    const second = tree.grants.add({ sessionId: session, root: join(tree.place, "second"), access: everything }).root;
    expect(await outcomeOf(() => tree.move(inRoot("file.txt"), `${second}/file.txt`))).toBe("cross-root");
    writeFileSync(join(second, "b.txt"), "b");
    expect(await outcomeOf(() => tree.move(`${second}/b.txt`, inRoot("b.txt"), { intent: "rename" }))).toBe("cross-root");
    expect(await outcomeOf(() => tree.move(`${second}/b.txt`, `${second}/c.txt`))).toBe("done");
    expect(existsSync(inRoot("file.txt"))).toBe(true);
  });

  test("a root that was granted through a link is known by both names, and stays where the link led", async () => {
    symlinkSync(join(tree.outside, "sub"), join(tree.place, "named"));
    tree.grants.add({ sessionId: session, root: join(tree.place, "named"), access: readOnly });
    expect(await tree.read(join(tree.place, "named/canary.txt"))).toContain("canary");
    expect(await tree.read(join(tree.outside, "sub/canary.txt"))).toContain("canary");
    expect(await outcomeOf(() => tree.read(join(tree.outside, "canary.txt")))).toBe("outside-roots");
  });
});

describe("the end of a grant", () => {
  test("a revoked root refuses from the next request on, and no wider grant takes it over", async () => {
    const narrow = tree.grants.add({ sessionId: session, root: inRoot("sub"), access: readOnly });
    expect(await tree.read(inRoot("sub/file.txt"))).toBe("narrow");
    expect(tree.grants.revoke(narrow.id)).toBe(true);
    expect(tree.grants.revoke(narrow.id)).toBe(false);
    expect(await outcomeOf(() => tree.read(inRoot("sub/file.txt")))).toBe("not-granted");
    expect(await outcomeOf(() => tree.write(inRoot("sub/file.txt"), "x"))).toBe("not-granted");
    expect(await tree.read(inRoot("file.txt"))).toBe("wide");
    tree.grants.add({ sessionId: session, root: inRoot("sub"), access: readOnly });
    expect(await tree.read(inRoot("sub/file.txt"))).toBe("narrow");
  });

  test("an expired grant refuses, the moment before it does not", async () => {
    tree.grants.add({ sessionId: session, root: tree.root, access: everything, expires: 500 });
    now = 1499;
    expect(await tree.read(inRoot("file.txt"))).toBe("wide");
    expect(tree.grants.list(session)).toHaveLength(1);
    now = 1500;
    expect(await outcomeOf(() => tree.read(inRoot("file.txt")))).toBe("not-granted");
    expect(tree.grants.list(session)).toHaveLength(0);
  });

  test("a grant that ends while a human thinks stops what was judged under it", async () => {
    using located = tree.resolver.locate({ sessionId: session, path: inRoot("file.txt"), intent: "delete" });
    using toRead = tree.resolver.locate({ sessionId: session, path: inRoot("file.txt"), intent: "read" });
    tree.grants.revoke(tree.grant.id);
    expect(await outcomeOf(() => tree.driver.delete(located))).toBe("not-granted");
    expect(await outcomeOf(() => tree.driver.read(toRead))).toBe("not-granted");
    expect(existsSync(inRoot("file.txt"))).toBe(true);
  });

  test("a session without grants has no files, and sessions do not share grants", async () => {
    expect(await outcomeOf(() => tree.resolver.locate({ sessionId: "s2", path: inRoot("file.txt"), intent: "read" }))).toBe("no-session");
    tree.grants.add({ sessionId: "s2", root: inRoot("sub"), access: readOnly });
    expect(await outcomeOf(() => tree.resolver.locate({ sessionId: "s2", path: inRoot("file.txt"), intent: "read" }))).toBe("outside-roots");
    tree.grants.endSession("s2");
    expect(await outcomeOf(() => tree.resolver.locate({ sessionId: "s2", path: inRoot("sub/file.txt"), intent: "read" }))).toBe("no-session");
  });
});
