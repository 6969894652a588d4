import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeFoldingHandles } from "./folding-handles.ts";
import { everything, type GuardedTree, makeGuardedTree, outcomeOf, session } from "./guarded-tree.ts";

let tree: GuardedTree;
const fill = (root: string) => {
  mkdirSync(join(root, "Docs/Inner"), { recursive: true });
  writeFileSync(join(root, "Docs/ReadMe.md"), "inside");
  writeFileSync(join(root, "Docs/caf\u00e9"), "composed");
};
afterEach(() => tree.end());

const inRoot = (path: string) => `${tree.root}/${path}`;
const judgedPath = (path: string) => {
  using located = tree.resolver.locate({ sessionId: session, path: inRoot(path), intent: "read" });
  return [located.relative, located.folds];
};

describe("on a file system that folds case", () => {
  beforeEach(() => {
    tree = makeGuardedTree({ grants: { handles: makeFoldingHandles() } });
    fill(tree.root);
  });

  test.each(["Docs/ReadMe.md", "docs/readme.md", "DOCS/README.MD", "docs//./README.md", "Docs/Inner/../readME.md"])("%s is judged under the name that the directory has", async (path) => {
    expect(judgedPath(path)).toEqual(["Docs/ReadMe.md", true]);
    expect(await tree.read(inRoot(path))).toBe("inside");
    // The answer does not depend on what was asked for before.
    expect(judgedPath("docs/README.md")).toEqual(["Docs/ReadMe.md", true]);
  });

  test("both normal forms of a name are one file, judged under one name", () => {
    expect(judgedPath("Docs/cafe\u0301")).toEqual(["Docs/caf\u00e9", true]);
    expect(judgedPath("docs/CAF\u00c9")).toEqual(["Docs/caf\u00e9", true]);
  });

  test("a write in another spelling changes the one file that is there", async () => {
    await tree.write(inRoot("docs/README.MD"), "changed");
    expect(readFileSync(inRoot("Docs/ReadMe.md"), "utf8")).toBe("changed");
    expect(readdirSync(inRoot("Docs")).toSorted()).toEqual(["Inner", "ReadMe.md", "caf\u00e9"]);
  });

  test("a file is not renamed to another spelling of itself, which would replace it by itself", async () => {
    expect(await outcomeOf(() => tree.move(inRoot("Docs/ReadMe.md"), inRoot("docs/README.MD"), { overwrite: true }))).toBe("EINVAL");
    expect(readFileSync(inRoot("Docs/ReadMe.md"), "utf8")).toBe("inside");
  });

  test("hidden names and the guard's own are so in every spelling", async () => {
    mkdirSync(inRoot(".Git"));
    writeFileSync(inRoot(".Git/Config"), "secret");
    mkdirSync(inRoot(".AgentBox"));
    writeFileSync(inRoot(".AgentBox/config.toml"), "policy");
    expect(await outcomeOf(() => tree.read(inRoot(".git/config")))).toBe("hidden");
    tree.grants.add({ sessionId: session, root: tree.root, access: everything, hidden: true });
    expect(await outcomeOf(() => tree.read(inRoot(".GIT/config")))).toBe("done");
    expect(await outcomeOf(() => tree.write(inRoot(".agentBOX/CONFIG.toml"), "planted"))).toBe("hidden");
  });

  test("a root is the deepest one in every spelling", async () => {
    tree.grants.add({ sessionId: session, root: inRoot("Docs/Inner"), access: { read: true, write: false, create: false, delete: false } });
    expect(await outcomeOf(() => tree.write(inRoot("Docs/Inner/new"), "x"))).toBe("not-granted");
    expect(await outcomeOf(() => tree.write(inRoot("docs/inner/new"), "x"))).toBe("link");
    expect(await outcomeOf(() => tree.move(inRoot("DOCS"), inRoot("Other")))).toBe("not-granted");
    expect(await outcomeOf(() => tree.write(inRoot("docs/new"), "x"))).toBe("done");
  });

  test("links lead nowhere else for another spelling", async () => {
    symlinkSync(tree.outside, inRoot("Link"));
    expect(await outcomeOf(() => tree.read(inRoot("LINK/canary.txt")))).toBe("link");
  });
});

describe("on a file system that does not", () => {
  beforeEach(() => {
    tree = makeGuardedTree();
    fill(tree.root);
  });

  test("each spelling is a name of its own, and each normal form", async () => {
    writeFileSync(inRoot("Docs/README.md"), "another");
    writeFileSync(inRoot("Docs/cafe\u0301"), "decomposed");
    expect(judgedPath("Docs/ReadMe.md")).toEqual(["Docs/ReadMe.md", false]);
    expect(await tree.read(inRoot("Docs/README.md"))).toBe("another");
    expect(await outcomeOf(() => tree.read(inRoot("docs/ReadMe.md")))).toBe("ENOENT");
    expect(await tree.read(inRoot("Docs/caf\u00e9"))).toBe("composed");
    expect(await tree.read(inRoot("Docs/cafe\u0301"))).toBe("decomposed");
  });
});
