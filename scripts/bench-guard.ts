import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { UsageError } from "../policy/errors.ts";
import { timeDecisions } from "./bench-guard/decisions.ts";
import { makeGuardedPlace } from "./bench-guard/place.ts";
import { makeReads, makeWrites } from "./bench-guard/small-files.ts";
import { makeStreams, PeakMemory } from "./bench-guard/streams.ts";
import { runTasks } from "./bench-guard/tasks.ts";
import { runScript } from "./edge.ts";
import { type Case, measureInterleaved, renderTable, summarize, type Summary } from "./measure.ts";

// Measures what the file guard adds to the file system's own calls, with its audit log on, in one run.

const EXT4 = 0xef53;

type Options = { rounds: number; streamRounds: number; streamMib: number; directory: string; json: string };
type Row = { name: string; unit: string; to?: string };
type Result = Row & { summary: Summary; ratio: number | undefined };

const ROWS: readonly Row[] = [
  { name: "readFile, 4 KB, six components deep", unit: "µs" },
  { name: "guarded read of it", unit: "µs", to: "readFile, 4 KB, six components deep" },
  { name: "write, fsync, rename, 4 KB", unit: "µs" },
  { name: "guarded write, new file", unit: "µs", to: "write, fsync, rename, 4 KB" },
  { name: "write, fsync, rename over a file", unit: "µs" },
  { name: "guarded write over a file, with a yes for the session", unit: "µs", to: "write, fsync, rename over a file" },
  { name: "createReadStream", unit: "MiB/s" },
  { name: "createReadStream, pieces of 1 MiB", unit: "MiB/s", to: "createReadStream" },
  { name: "createReadStream, pieces of 1 MiB, SHA-256", unit: "MiB/s", to: "createReadStream" },
  { name: "guarded stream read, SHA-256 included", unit: "MiB/s", to: "createReadStream" },
  { name: "stream write and fsync", unit: "MiB/s" },
  { name: "guarded stream write, SHA-256 included", unit: "MiB/s", to: "stream write and fsync" },
  { name: "decision, 10 rules", unit: "µs" },
  { name: "decision, 10,000 rules", unit: "µs", to: "decision, 10 rules" },
  { name: "grant of a path, 10 grants", unit: "µs" },
  { name: "grant of a path, 10,000 grants", unit: "µs", to: "grant of a path, 10 grants" },
  { name: "100 tasks at once, each operation", unit: "µs" },
];

async function main(argv: readonly string[]): Promise<void> {
  const options = readOptions(argv);
  mkdirSync(options.directory, { recursive: true });
  const top = mkdtempSync(join(options.directory, "bench-guard-"));
  try {
    if (statfsSync(top).type !== EXT4) process.stderr.write(`${top} is not on ext4: the goals are meant for that\n`);
    const memory = new PeakMemory();
    const samples = await measure(top, options, memory);
    const results = ROWS.map((row) => conclude(row, samples));
    process.stdout.write(`${render(results, options)}\n\nA guarded stream takes at most ${(memory.most / 1024 ** 2).toFixed(0)} MiB of memory more than before it.\n`);
    mkdirSync(dirname(options.json), { recursive: true });
    const { rounds, streamRounds, streamMib } = options;
    const document = { benchmark: "guard", node: process.version, cpu: cpus()[0]?.model ?? "unknown", rounds, streamRounds, streamMib, streamMemoryBytes: memory.most, results };
    writeFileSync(options.json, `${JSON.stringify(document, undefined, 2)}\n`);
  } finally {
    rmSync(top, { recursive: true });
  }
}

async function measure(top: string, { rounds, streamRounds, streamMib }: Options, memory: PeakMemory): Promise<ReadonlyMap<string, readonly number[]>> {
  await using place = makeGuardedPlace(top);
  const decisions = timeDecisions(top);
  const small: readonly Case[] = [...makeReads(place), ...makeWrites(place), ...decisions.cases, { name: "100 tasks at once, each operation", run: () => runTasks(place) }];
  const samples = new Map(await measureInterleaved(small, rounds));
  decisions.end();
  for (const [name, found] of await measureInterleaved(makeStreams(place, streamMib, memory), streamRounds)) samples.set(name, found);
  return samples;
}

function readOptions(argv: readonly string[]): Options {
  const build = join(import.meta.dirname, "../build");
  const options = { rounds: textOption("15"), "stream-rounds": textOption("5"), "stream-mib": textOption("1024"), directory: textOption(build), json: textOption(join(build, "bench-guard.json")) };
  let values;
  try {
    ({ values } = parseArgs({ args: [...argv], options }));
  } catch (error) {
    throw new UsageError({ what: error instanceof Error ? error.message : String(error), expected: "--rounds N, --stream-rounds N, --stream-mib N, --directory DIR and --json FILE", fix: "correct the option" }, { cause: error });
  }
  const count = (name: "rounds" | "stream-rounds" | "stream-mib"): number => {
    const number = Number(values[name]);
    if (Number.isInteger(number) && number >= 1) return number;
    throw new UsageError({ what: `--${name} ${values[name]} is no count`, expected: "a whole number from 1 on", fix: `leave --${name} out` });
  };
  return { rounds: count("rounds"), streamRounds: count("stream-rounds"), streamMib: count("stream-mib"), directory: values.directory, json: values.json };
}

function textOption(value: string) {
  return { type: "string", default: value } as const;
}

function conclude(row: Row, samples: ReadonlyMap<string, readonly number[]>): Result {
  const summary = summarize(samples.get(row.name) ?? []);
  const base = row.to === undefined ? undefined : summarize(samples.get(row.to) ?? []);
  return { ...row, summary, ratio: base === undefined ? undefined : summary.median / base.median };
}

function render(results: readonly Result[], { rounds, streamRounds, streamMib }: Options): string {
  const rows = results.map(({ name, unit, summary: { q1, median, q3 }, ratio }) => [name, unit, renderNumber(median), `${renderNumber(q1)}–${renderNumber(q3)}`, ratio === undefined ? "1" : ratio.toFixed(2)]);
  return `${rounds} interleaved rounds, ${streamRounds} of streams of ${streamMib} MiB\n\n${renderTable([["case", "unit", "median", "quartiles", "to plain"], ...rows])}`;
}

function renderNumber(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0);
}

await runScript(() => main(process.argv.slice(2)));
