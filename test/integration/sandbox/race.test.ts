import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { CANARY, countHandles, everything, type GuardedTree, makeGuardedTree, outcomeOf, session, takeSnapshot } from "./guarded-tree.ts";

const RACE_MS = 30_000;
const script = resolve(import.meta.dirname, "../../fixtures/swap-paths.py");

/** Outside lies a tree with the names that are used inside, so that whatever is done in the wrong place finds its victim. */
function build(tree: GuardedTree): void {
  const mirror = join(tree.outside, "mirror");
  for (const directory of [mirror, join(mirror, "e")]) {
    mkdirSync(directory, { recursive: true });
    for (const name of ["file", "free", "canary-only"]) writeFileSync(join(directory, name), CANARY);
  }
  for (const directory of ["dir", "x/y/dir"]) {
    mkdirSync(join(tree.root, directory, "e"), { recursive: true });
    writeFileSync(join(tree.root, directory, "e/file"), "inside");
    symlinkSync(mirror, join(tree.root, `${directory}.other`));
  }
  for (const directory of ["links", "fifos", "devices"]) mkdirSync(join(tree.root, directory));
  mkdirSync(`${tree.root}-second`);
  writeFileSync(`${tree.root}-second/file`, "inside");
  symlinkSync(mirror, `${tree.root}-second.other`);
  tree.grants.add({ sessionId: session, root: `${tree.root}-second`, access: everything });
}

const targets = (root: string) => [
  `${root}/dir/e/file`,
  `${root}/x/y/dir/e/file`,
  `${root}/x/y/dir/e/../../dir/e/file`,
  `${root}/x/../dir//e/file`,
  `${root}/links/file`,
  `${root}/fifos/file`,
  `${root}/devices/file`,
  `${root}-second/file`,
];

type Attempt = (tree: GuardedTree, target: string, turn: number) => Promise<unknown>;

const attempts: Record<string, Attempt> = {
  read: async (tree, target) => {
    const text = await tree.read(target);
    if (!/^(?:inside.*)?$/.test(text)) throw new Error(`read from outside of the root: ${text.slice(0, 50)}`);
  },
  write: (tree, target, turn) => tree.write(target, `inside ${turn}`),
  create: (tree, target) => tree.write(`${target}-new`, "inside", "create"),
  delete: (tree, target) => tree.remove(`${target}-new`),
  rename: (tree, target) => tree.move(target, target.replace(/file$/, "free"), { intent: "rename" }),
  moveBack: (tree, target) => tree.move(target.replace(/file$/, "free"), target, { overwrite: true }),
  list: async (tree, target) => {
    const names = [...(await tree.list(tree.root, true)), ...(await tree.list(target.slice(0, target.lastIndexOf("/")), true))];
    if (names.some((name) => name.includes("canary-only"))) throw new Error("listed from outside of the root");
  },
};

test("whatever another process exchanges meanwhile, nothing outside is read or changed", { timeout: RACE_MS + 60_000 }, async () => {
  const tree = makeGuardedTree();
  build(tree);
  const before = takeSnapshot(tree.outside);
  const swapper = spawn("python3", [script, tree.root, tree.outside], { stdio: ["pipe", "pipe", "inherit"] });
  const counts = new Map<string, Map<string, number>>(Object.keys(attempts).map((name) => [name, new Map()]));
  try {
    await nextLine(swapper);
    const handlesBefore = countHandles();
    const places = targets(tree.root);
    const end = performance.now() + RACE_MS;
    for (let turn = 0; performance.now() < end; turn += 1) {
      const target = places[turn % places.length] ?? "";
      for (const [name, attempt] of Object.entries(attempts)) {
        const outcome = await outcomeOf(() => attempt(tree, target, turn));
        const seen = counts.get(name);
        seen?.set(outcome, (seen.get(outcome) ?? 0) + 1);
      }
      if (turn % 100 === 0 && takeSnapshot(tree.outside) !== before) throw new Error("something outside of the root was changed");
    }
    await tree.driver.settle();
    expect(countHandles()).toBeLessThan(handlesBefore + 5);
  } finally {
    swapper.stdin.end();
  }
  const exchanged = Number(await nextLine(swapper));
  expect(takeSnapshot(tree.outside)).toBe(before);
  expect(exchanged).toBeGreaterThan(10_000);
  for (const [name, outcomes] of counts) {
    // A race in which everything succeeds, or nothing, has raced with nobody.
    expect(outcomes.get("done") ?? 0, `${name}: ${JSON.stringify([...outcomes])}`).toBeGreaterThan(20);
    expect(outcomes.get("link") ?? 0, `${name}: ${JSON.stringify([...outcomes])}`).toBeGreaterThan(20);
  }
  expect(counts.get("read")?.get("special-file") ?? 0).toBeGreaterThan(20);
  await tree.end();
});

async function nextLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("the swapper has no output");
  const [data] = await once(stdout, "data");
  return String(data).trim();
}
