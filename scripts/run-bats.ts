import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";

const ROOT = join(import.meta.dirname, "..");
/** Runs side by side, each with a lab, a home and users of its own: boxes mostly wait, for the engine and for each other. */
const LANES = 4;

type Counts = { passed: number; failed: number; skipped: number };

/** Runs bats on `files`, all of test/image where none is named, shows its TAP lines and counts them. */
export async function runBats(files: readonly string[]): Promise<Counts> {
  const lanes = files.length > 0 ? [files] : spread(globSync("test/image/*.bats", { cwd: ROOT }), LANES);
  const counts = await Promise.all(lanes.map(runLane));
  const sum = (key: keyof Counts): number => counts.reduce((total, lane) => total + lane[key], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

/** Shares the files out, the largest first and each to the lane with the least text. */
function spread(files: readonly string[], count: number): string[][] {
  const lanes = Array.from({ length: count }, () => ({ files: [] as string[], bytes: 0 }));
  const sized = files.map((file) => ({ file, bytes: statSync(join(ROOT, file)).size })).toSorted((a, b) => b.bytes - a.bytes);
  for (const { file, bytes } of sized) {
    const least = lanes.reduce((best, lane) => (lane.bytes < best.bytes ? lane : best));
    least.files.push(file);
    least.bytes += bytes;
  }
  return lanes.map((lane) => lane.files.toSorted());
}

async function runLane(files: readonly string[]): Promise<Counts> {
  // npm makes no link for a package that names a directory of programs, and a system's own bats is older.
  const bats = execa(join(ROOT, "node_modules/bats/bin/bats"), ["--formatter", "tap", "--print-output-on-failure", ...files], {
    cwd: ROOT,
    preferLocal: true,
    stdin: "ignore",
    stderr: "inherit",
    reject: false,
    lines: true,
  });
  await showResults(bats);
  const { stdout, exitCode } = await bats;
  const lines = stdout.filter(isResult);
  const skipped = lines.filter((line) => / # skip/i.test(line)).length;
  const failed = lines.filter((line) => line.startsWith("not ok")).length;
  // bats ends with an error of its own when a set-up fails before the first test.
  return { passed: lines.length - failed - skipped, failed: exitCode === 0 ? failed : Math.max(1, failed), skipped };
}

/** Each result stays together with what its test printed, whatever other lanes show meanwhile. */
async function showResults(lines: AsyncIterable<string>): Promise<void> {
  let group: string[] = [];
  const show = (): void => void (group.length > 0 && process.stdout.write(`${group.join("\n")}\n`));
  for await (const line of lines) {
    if (isResult(line)) {
      show();
      group = [];
    }
    group.push(line);
  }
  show();
}

function isResult(line: string): boolean {
  return /^(?:not )?ok \d+/.test(line);
}

if (import.meta.main) {
  const { failed } = await runBats(process.argv.slice(2));
  process.exitCode = failed === 0 ? 0 : 1;
}
