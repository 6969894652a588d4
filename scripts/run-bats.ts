import { globSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";

const ROOT = join(import.meta.dirname, "..");

/** Runs bats on `files`, all of test/image where none is named, shows its TAP lines and counts them. */
export async function runBats(files: readonly string[]): Promise<{ passed: number; failed: number; skipped: number }> {
  const chosen = files.length > 0 ? files : globSync("test/image/*.bats", { cwd: ROOT }).toSorted();
  // npm makes no link for a package that names a directory of programs, and a system's own bats is older.
  const bats = execa(join(ROOT, "node_modules/bats/bin/bats"), ["--formatter", "tap", "--print-output-on-failure", ...chosen], {
    cwd: ROOT,
    preferLocal: true,
    stdin: "ignore",
    stdout: ["pipe", "inherit"],
    stderr: "inherit",
    reject: false,
    lines: true,
  });
  const { stdout, exitCode } = await bats;
  const lines = stdout.filter((line) => /^(?:not )?ok \d+/.test(line));
  const skipped = lines.filter((line) => / # skip/i.test(line)).length;
  const failed = lines.filter((line) => line.startsWith("not ok")).length;
  // bats ends with an error of its own when a set-up fails before the first test.
  return { passed: lines.length - failed - skipped, failed: exitCode === 0 ? failed : Math.max(1, failed), skipped };
}

if (import.meta.main) {
  const { failed } = await runBats(process.argv.slice(2));
  process.exitCode = failed === 0 ? 0 : 1;
}
