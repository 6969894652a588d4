import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { decide } from "../policy/decide.ts";
import { UsageError } from "../policy/errors.ts";
import { parseTarget } from "../policy/entry.ts";
import { buildPolicy, type Policy, type RuleInput } from "../policy/policy.ts";
import { runScript } from "./edge.ts";
import { measureInterleaved, renderTable, summarize, type Summary } from "./measure.ts";

// Measures case 42 of the acceptance list: how the time of a decision depends on the number of rules.

const SIZES = [10, 1000, 100_000, 1_000_000];
const HOSTS = 20_000;
const MIN_ROUNDS = 15;

type Result = { rules: number; buildMs: number; maxSteps: number; perDecisionUs: Summary };

async function main(argv: readonly string[]): Promise<void> {
  const { rounds, json } = readOptions(argv);
  const subjects = SIZES.map((size) => ({ size, ...build(size), hosts: makeHosts(size) }));
  const cases = subjects.map(({ size, policy, hosts }) => ({ name: String(size), run: () => timeDecisions(policy, hosts) }));
  const samples = await measureInterleaved(cases, rounds);
  const results = subjects.map(({ size, policy, hosts, buildMs }): Result => {
    return { rules: size, buildMs, maxSteps: countSteps(policy, hosts), perDecisionUs: summarize(samples.get(String(size)) ?? []) };
  });
  process.stdout.write(`${render(results, rounds)}\n`);
  mkdirSync(dirname(json), { recursive: true });
  const document = { benchmark: "policy", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds, hosts: HOSTS, results };
  writeFileSync(json, `${JSON.stringify(document, undefined, 2)}\n`);
}

function readOptions(argv: readonly string[]): { rounds: number; json: string } {
  const options = { rounds: { type: "string", default: String(MIN_ROUNDS) }, json: { type: "string", default: join(import.meta.dirname, "../build/bench-policy.json") } } as const;
  let values;
  try {
    ({ values } = parseArgs({ args: [...argv], options }));
  } catch (error) {
    throw new UsageError({ what: error instanceof Error ? error.message : String(error), expected: "--rounds N and --json FILE", fix: "correct the option" }, { cause: error });
  }
  const rounds = Number(values.rounds);
  if (Number.isInteger(rounds) && rounds >= 1) return { rounds, json: values.json };
  throw new UsageError({ what: `--rounds ${values.rounds} is not a number of rounds`, expected: `a whole number, ${MIN_ROUNDS} or more for figures worth quoting`, fix: `write --rounds ${MIN_ROUNDS}` });
}

function build(size: number): { policy: Policy; buildMs: number } {
  const rules = Array.from({ length: size }, (_, index): RuleInput => {
    const text = ruleText(index);
    const target = parseTarget(text, "rules");
    if (!target.ok) throw new Error(target.complaint.what);
    return { action: index % 10 === 9 ? "deny" : "allow", match: target.value, ports: [443], text, origins: [] };
  });
  const started = performance.now();
  const policy = buildPolicy({ rules });
  return { policy, buildMs: performance.now() - started };
}

/** Every third rule is a wildcard; a thousand names share each registered domain. */
function ruleText(index: number): string {
  const name = `host${index}.team${index % 1000}.example${Math.floor(index / 1000)}.com`;
  return index % 3 === 0 ? `**.${name}` : name;
}

/** Distinct hosts spread over all rules: a third matches a name, a third lies below one, a third matches nothing. */
function makeHosts(size: number): readonly string[] {
  const stride = Math.max(1, Math.floor(size / HOSTS));
  return Array.from({ length: HOSTS }, (_, index) => {
    const name = ruleText((index * stride) % size).replace(/^\*\*\./, "");
    if (index % 3 === 0 && index * stride < size) return name;
    return index % 3 === 2 ? `unknown${index}.example.org` : `n${index}.${name}`;
  });
}

function timeDecisions(policy: Policy, hosts: readonly string[]): number {
  let allowed = 0;
  const started = performance.now();
  for (const host of hosts) if (decide(policy, { host, port: 443 }).action === "allow") allowed += 1;
  const ms = performance.now() - started;
  // Using the sum keeps the loop from being optimised away.
  if (allowed === 0) throw new Error("no host was allowed: the benchmark does not measure what it should");
  return (ms * 1000) / hosts.length;
}

function countSteps(policy: Policy, hosts: readonly string[]): number {
  return hosts.reduce((most, host) => {
    const steps = { count: 0 };
    decide(policy, { host, port: 443 }, steps);
    return Math.max(most, steps.count);
  }, 0);
}

function render(results: readonly Result[], rounds: number): string {
  const first = results[0]?.perDecisionUs.median ?? Number.NaN;
  const head = ["rules", "steps at most", "median µs", "quartiles µs", "× 10 rules", "build ms"];
  const rows = results.map(({ rules, maxSteps, perDecisionUs: { q1, median, q3 }, buildMs }) => [
    rules.toLocaleString("en"),
    String(maxSteps),
    median.toFixed(3),
    `${q1.toFixed(3)}–${q3.toFixed(3)}`,
    (median / first).toFixed(2),
    buildMs.toFixed(1),
  ]);
  return `Time per decision over ${HOSTS.toLocaleString("en")} distinct hosts, ${rounds} interleaved rounds\n\n${renderTable([head, ...rows])}`;
}

await runScript(() => main(process.argv.slice(2)));
