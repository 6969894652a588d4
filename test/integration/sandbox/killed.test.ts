import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, unlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { type GuardedTree, makeGuardedTree } from "./guarded-tree.ts";

// The whole guard is killed 200 times (crash.test.ts); here what its driver leaves is looked at more closely.
const RUNS = 40;
const writer = resolve(import.meta.dirname, "../../fixtures/guard-writer.ts");

/** Kills a writer at a random moment of its work. */
async function killOne(root: string): Promise<void> {
  const child = spawn(process.execPath, [writer, root], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), ended]);
  await setTimeout(Math.random() * 60);
  child.kill("SIGKILL");
  // A writer that failed by itself was not killed, and proves nothing.
  expect((await ended)[1]).toBe("SIGKILL");
}

/** What is half: a file whose bytes are not one number again and again in one of the lengths that are written. */
function findHalf(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => {
    const path = join(root, name);
    const isOther = !statSync(path).isFile() || name.endsWith(".json") || /(?:^|\/)\.agentbox-[0-9a-f]{24}$/.test(name);
    if (isOther) return false;
    const text = readFileSync(path, "utf8");
    const whole = text.slice(0, 8).repeat(Number(text.slice(0, 8)) % 2 === 0 ? 512 : 60_000);
    return text !== whole;
  });
}

/** Between link and unlink a moved file has both names; a user removes one. */
function settleMove(root: string): number {
  const [here, there] = [join(root, "moved"), join(root, "sub/moved")];
  if (!existsSync(here)) linkSync(there, here);
  if (!existsSync(there)) return 1;
  const names = statSync(here).nlink;
  unlinkSync(there);
  return names;
}

test(`${RUNS} killed writers leave every file old or new, and what they began is cleared away`, { timeout: 300_000 }, async () => {
  const trees = Array.from({ length: 4 }, () => makeGuardedTree());
  const unfinished: string[] = [];
  let runs = 0;
  await Promise.all(
    trees.map(async (tree) => {
      mkdirSync(join(tree.root, "sub"));
      while (runs < RUNS) {
        runs += 1;
        await killOne(tree.root);
        expect(findHalf(tree.root)).toEqual([]);
        expect(settleMove(tree.root)).toBeLessThanOrEqual(2);
        unfinished.push(...findUnfinished(tree));
      }
    }),
  );
  // Without a single kill in the middle of a write nothing was tested.
  expect(new Set(unfinished).size).toBeGreaterThan(RUNS / 20);
  for (const tree of trees) {
    const later = makeGuardedTree({ driver: { now: () => Date.now() + 120_000 } });
    later.grants.add({ sessionId: "s1", root: tree.root, access: tree.grant.access });
    await later.write(join(tree.root, "last"), "x");
    expect(findUnfinished(tree)).toEqual([]);
    await later.end();
    await tree.end();
  }
});

function findUnfinished({ root }: GuardedTree): string[] {
  return readdirSync(root).filter((name) => /^\.agentbox-[0-9a-f]{24}$/.test(name));
}
