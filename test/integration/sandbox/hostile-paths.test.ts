import { mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isWithin } from "../../../sandbox/forbidden-root.ts";
import { type Handles, linuxHandles } from "../../../sandbox/held-path.ts";
import { makeFoldingHandles } from "./folding-handles.ts";
import { countHandles, type GuardedTree, makeGuardedTree, outcomeOf, session, takeSnapshot } from "./guarded-tree.ts";

/** Links in every position and of every kind; what they lead to is written from `a/b`, where they lie, and from the root. */
const links = (tree: GuardedTree): readonly [string, string][] => [
  ["in", "a"],
  ["inFile", "a/b/file.txt"],
  ["inAbsolute", `${tree.root}/a/b`],
  ["inDots", "a/../a/b/./../b"],
  ["chain", "in"],
  ["out", tree.outside],
  ["outRelative", "../outside"],
  ["outFile", `${tree.outside}/canary.txt`],
  ["outChain", "out"],
  ["outAndBack", "../root/a"],
  ["outDots", "a/b/../../../outside"],
  ["up", ".."],
  ["here", "."],
  ["self", "self"],
  ["system", "/"],
  ["proc", "/proc/self/root"],
  ["cwd", "/proc/self/cwd"],
  ["handle", "/proc/self/fd/0"],
  ["null", "/dev/null"],
  ["dangling", "../outside/new"],
  ["a/b/up2", "../.."],
  ["a/b/up3", "../../.."],
  ["a/b/out", "../../../outside/sub"],
  ["a/b/in", "file.txt"],
];

const names = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "file.txt", "deep", "in", "inFile", "inAbsolute", "inDots", "chain", "here", "new") },
  { weight: 5, arbitrary: fc.constantFrom("out", "outRelative", "outFile", "outChain", "outAndBack", "outDots", "up", "up2", "up3", "self", "system", "proc", "cwd", "handle", "null", "dangling") },
  { weight: 4, arbitrary: fc.constantFrom("..", ".", "", "...", " ", "-", "~", "*", "\\", "\n") },
  { weight: 2, arbitrary: fc.constantFrom("%2e%2e", "..%2f", "%00", "\uff0e\uff0e", "\u2024\u2024", "..\\..", "..;", "\u202e..", "..\u200d", ". .", "c\u0327", "\u00e7", "\ud800", "nul\0") },
  { weight: 2, arbitrary: fc.constantFrom("canary.txt", "sub", "outside", "root", "etc", "passwd", "tmp", "self", "fd", "0") },
  { weight: 1, arbitrary: fc.constantFrom("A", "FILE.TXT", "File.Txt", "OUT", "IN", "In", "A\u030a") },
  { weight: 1, arbitrary: fc.constantFrom(".env", ".git", ".agentbox", ".agentbox-trash", "GIT~1") },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 300 }).map((length) => "n".repeat(length)) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
);

const paths = fc.record({
  start: fc.constantFrom("root", "root", "root", "root", "relative", "outside", "above", "rootDots", "doubled", "viaProc", "none"),
  names: fc.oneof({ weight: 20, arbitrary: fc.array(names, { maxLength: 7 }) }, { weight: 1, arbitrary: fc.array(names, { minLength: 300, maxLength: 900 }) }),
  separator: fc.constantFrom("/", "/", "/", "//", "/./"),
  end: fc.constantFrom("", "", "", "/", "/.", "//", "/.."),
});

const operations = fc.constantFrom("read", "read", "read", "list", "write", "create", "delete", "moveFrom", "moveTo", "rename");

type Hostile = { start: string; names: string[]; separator: string; end: string };

function renderPath(tree: GuardedTree, { start, names: parts, separator, end }: Hostile): string {
  const starts: Record<string, string> = {
    root: `${tree.root}/`,
    relative: "",
    outside: `${tree.outside}/`,
    above: `${tree.place}/`,
    rootDots: `${tree.root}/../root/`,
    doubled: `//${tree.root}//`,
    viaProc: `/proc/self/root${tree.root}/`,
    none: "/",
  };
  return `${starts[start] ?? ""}${parts.join(separator)}${end}` || ".";
}

function build(tree: GuardedTree): void {
  for (const name of readdirSync(tree.root)) rmSync(join(tree.root, name), { recursive: true, force: true });
  mkdirSync(join(tree.root, "a/b/deep"), { recursive: true });
  for (const name of ["a/b/file.txt", "a/file.txt", "file.txt"]) writeFileSync(join(tree.root, name), "inside");
  for (const [name, target] of links(tree)) symlinkSync(target, join(tree.root, name));
}

async function attempt(tree: GuardedTree, operation: string, path: string, read: (text: string) => void): Promise<void> {
  const file = `${tree.root}/a/file.txt`;
  switch (operation) {
    case "read":
      return read(await tree.read(path));
    case "list":
      return read((await tree.list(path, true)).join("\n"));
    case "write":
    case "create":
      return tree.write(path, "planted", operation);
    case "delete":
      return void (await tree.remove(path));
    case "moveFrom":
      return tree.move(path, `${tree.root}/moved`, { overwrite: true });
    case "rename":
      return tree.move(path, `${path}2`, { intent: "rename" });
    default:
      return tree.move(file, path, { overwrite: true });
  }
}

/** Where the kernel itself ends up, for comparison. */
function kernelPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

function compareWithKernel(tree: GuardedTree, path: string): void {
  using located = tree.resolver.locate({ sessionId: session, path, intent: "read" });
  const real = kernelPath(path.startsWith("/") ? path : `${tree.root}/${path}`);
  if (located.path !== real || !isWithin(real, tree.root)) throw new Error(`${located.path} was located, and the kernel says ${real}`);
}

describe.each<[string, () => Handles, number]>([
  ["on this file system", () => linuxHandles, 10_000],
  ["on one that folds case", makeFoldingHandles, 2_000],
])("hostile paths %s", (system, makeHandles, numRuns) => {
  test("lead no operation out of the root, and no handle stays open", { timeout: 300_000 }, async () => {
    const handlesBefore = countHandles();
    const tree = makeGuardedTree({ grants: { handles: makeHandles() } });
    const before = takeSnapshot(tree.outside);
    const outcomes = new Map<string, number>();
    build(tree);
    try {
      await fc.assert(
        fc.asyncProperty(paths, operations, async (hostile, operation) => {
          const path = renderPath(tree, hostile);
          const outcome = await outcomeOf(() => attempt(tree, operation, path, (text) => expect(text).not.toContain("canary")));
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          if (takeSnapshot(tree.outside) !== before) throw new Error("something outside of the root was changed");
          if (readdirSync(tree.place).toSorted().join() !== "outside,root") throw new Error("something was made beside the root");
          if (outcome !== "done") return;
          // The simulation folds where the kernel does not.
          if (operation === "read" && system === "on this file system") compareWithKernel(tree, path);
          if (operation !== "read" && operation !== "list") build(tree);
        }),
        { numRuns },
      );
    } finally {
      await tree.end();
    }
    const rare = ["done", "link", "outside-roots", "malformed-path", "hidden", "ENOENT", "ENOTDIR"].filter((outcome) => (outcomes.get(outcome) ?? 0) < numRuns / 500);
    expect(rare).toEqual([]);
    expect(countHandles()).toBe(handlesBefore);
  });
});
