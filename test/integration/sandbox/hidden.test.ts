import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { everything, type GuardedTree, makeGuardedTree, outcomeOf, session } from "./guarded-tree.ts";

let tree: GuardedTree;

beforeEach(() => {
  tree = makeGuardedTree();
  for (const name of [".git", ".agentbox", "node_modules/.bin", "sub/.env.d"]) mkdirSync(join(tree.root, name), { recursive: true });
  for (const name of [".env", ".git/config", ".agentbox/config.toml", "node_modules/x.js", "sub/.env.d/key"]) writeFileSync(join(tree.root, name), name);
});
afterEach(() => tree.end());

const inRoot = (path: string) => `${tree.root}/${path}`;

describe("without hidden names in the grant", () => {
  test.each([".env", ".git/config", ".agentbox/config.toml", "sub/.env.d/key", ".env/", "./.env", "sub/../.env"])("%s is not read", async (path) => {
    expect(await outcomeOf(() => tree.read(inRoot(path)))).toBe("hidden");
  });

  test("they are neither made, renamed to, nor named in a list", async () => {
    expect(await outcomeOf(() => tree.write(inRoot(".bashrc"), "x", "create"))).toBe("hidden");
    expect(await outcomeOf(() => tree.move(inRoot("node_modules/x.js"), inRoot(".x.js")))).toBe("hidden");
    expect(await tree.list(tree.root, true)).toEqual(["node_modules", "node_modules/x.js", "sub"]);
  });

  test("node_modules is no hidden name", async () => {
    expect(await tree.read(inRoot("node_modules/x.js"))).toBe("node_modules/x.js");
  });
});

describe("with hidden names in the grant", () => {
  beforeEach(() => {
    tree.grants.add({ sessionId: session, root: tree.root, access: everything, hidden: true });
  });

  test("they are read and changed", async () => {
    expect(await tree.read(inRoot(".env"))).toBe(".env");
    expect(await outcomeOf(() => tree.write(inRoot(".git/config"), "changed"))).toBe("done");
    expect(await tree.list(inRoot("sub"), true)).toEqual(["sub/.env.d", "sub/.env.d/key"]);
  });

  test("the configuration that judges the session is read, and changed by no way", async () => {
    expect(await tree.read(inRoot(".agentbox/config.toml"))).toBe(".agentbox/config.toml");
    for (const attempt of [
      () => tree.write(inRoot(".agentbox/config.toml"), "planted"),
      () => tree.write(inRoot(".agentbox/new"), "planted", "create"),
      () => tree.remove(inRoot(".agentbox/config.toml")),
      () => tree.move(inRoot(".agentbox"), inRoot("elsewhere")),
      () => tree.move(inRoot("sub"), inRoot(".agentbox")),
      () => tree.move(inRoot(".env"), inRoot(".agentbox/config.toml"), { overwrite: true }),
    ]) {
      expect(await outcomeOf(attempt)).toBe("hidden");
    }
    expect(readFileSync(inRoot(".agentbox/config.toml"), "utf8")).toBe(".agentbox/config.toml");
  });

  test("the guard's unfinished files and its trash are not touched", async () => {
    writeFileSync(inRoot(".agentbox-0123456789abcdef01234567"), "unfinished");
    expect(await outcomeOf(() => tree.read(inRoot(".agentbox-0123456789abcdef01234567")))).toBe("hidden");
    expect(await outcomeOf(() => tree.write(inRoot(".agentbox-trash/x"), "x"))).toBe("hidden");
    expect(await tree.list(tree.root)).not.toContain(".agentbox-0123456789abcdef01234567");
    expect(existsSync(inRoot(".agentbox-trash"))).toBe(false);
  });
});

test("a root that lies in a hidden directory was named by whoever granted it", async () => {
  tree.grants.add({ sessionId: session, root: inRoot("sub/.env.d"), access: everything });
  expect(await tree.read(inRoot("sub/.env.d/key"))).toBe("sub/.env.d/key");
  expect(await outcomeOf(() => tree.read(inRoot(".env")))).toBe("hidden");
});
