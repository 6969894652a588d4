import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { GrantManager } from "../../sandbox/grant-manager.ts";
import { type JudgedAction, PolicyEngine } from "../../sandbox/policy-engine.ts";
import type { Case } from "../measure.ts";
import { SESSION } from "./place.ts";

const SIZES = [10, 10_000];
const DECISIONS = 2000;

/** Decisions under few and many rules, and the grant of a path among few and many. */
export function timeDecisions(top: string): { cases: Case[]; end: () => void } {
  const ends: (() => void)[] = [];
  const cases = SIZES.flatMap((size) => {
    const engine = new PolicyEngine({ rules: Array.from({ length: size }, (_, index) => ({ id: `rule-${index}`, path: `team-${index % 100}/part-${index}/**`, action: index % 2 === 0 ? ("deny" as const) : ("allow" as const) })) });
    const actions = Array.from({ length: DECISIONS }, (_, index) => describe(`team-${index % 100}/part-${(index * 7) % size}/src/a/b/file.txt`));
    const { grants, paths } = grantMany(join(top, `grants-${size}`), size);
    ends.push(() => grants.endSession(SESSION));
    return [
      { name: `decision, ${size.toLocaleString("en")} rules`, run: () => time(actions, (action) => engine.decide(action).decision !== "confirm") },
      { name: `grant of a path, ${size.toLocaleString("en")} grants`, run: () => time(paths, (path) => grants.grantFor(SESSION, path) !== undefined) },
    ];
  });
  return { cases, end: () => ends.forEach((end) => end()) };
}

function describe(relative: string): JudgedAction {
  return { intent: "read", target: { root: "/srv/work", relative, absolute: `/srv/work/${relative}`, exists: true, hidden: false, folding: false }, size: 100 };
}

function grantMany(directory: string, count: number): { grants: GrantManager; paths: string[] } {
  const grants = new GrantManager();
  const roots = Array.from({ length: count }, (_, index) => {
    const root = join(directory, `root-${index}`);
    mkdirSync(root, { recursive: true });
    return grants.add({ sessionId: SESSION, root, access: { read: true, write: false, create: false, delete: false } }).root;
  });
  return { grants, paths: Array.from({ length: DECISIONS }, (_, index) => `${roots[(index * 7) % count] ?? ""}/src/a/b/file.txt`) };
}

/** Microseconds each; a judgement that is not as expected would measure something else. */
function time<T>(values: readonly T[], judge: (value: T) => boolean): number {
  const started = performance.now();
  const held = values.filter(judge).length;
  const us = ((performance.now() - started) * 1000) / values.length;
  if (held !== values.length) throw new Error("the benchmark does not measure what it should");
  return us;
}
