import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { z } from "zod";
import { prepareTestImage, TEST_AGENTS } from "../test/image/test-image.ts";
import { runScript } from "./edge.ts";
import { ensureDocker, provision, TEST_NEEDS } from "./provision.ts";
import { runBats } from "./run-bats.ts";

/**
 * `npm test`: everything. Installs what is missing, then build, lint, types, vitest and bats, and ends with
 * one line of counts. A skipped test is a failure with CI=true, where every machine can run all of them.
 */
type Counts = { passed: number; failed: number; skipped: number };

const ROOT = join(import.meta.dirname, "..");
const REPORT = join(ROOT, "build/vitest.json");

async function main(): Promise<boolean> {
  await provision(TEST_NEEDS);
  await ensureDocker();
  await run("npm", ["run", "--silent", "build"]);
  await run("npm", ["run", "--silent", "types"]);
  await run("npm", ["run", "--silent", "lint"]);
  const { image: testImage } = await prepareTestImage({ agents: TEST_AGENTS });
  const unit = await runVitest(testImage);
  const image = await runBats([]);
  const counts = { passed: unit.passed + image.passed, failed: unit.failed + image.failed, skipped: unit.skipped + image.skipped };
  const skipped = counts.skipped === 0 ? "" : `, ${counts.skipped} skipped`;
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`);
  return counts.failed === 0 && (counts.skipped === 0 || process.env["CI"] !== "true");
}

async function run(file: string, argv: readonly string[]): Promise<void> {
  await execa(file, argv, { cwd: ROOT, stdio: "inherit", preferLocal: true });
}

const reportSchema = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), numPendingTests: z.int(), numTodoTests: z.int(), success: z.boolean() });

async function runVitest(image: string): Promise<Counts> {
  rmSync(REPORT, { force: true });
  const argv = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${REPORT}`];
  await execa("vitest", argv, { cwd: ROOT, stdio: "inherit", preferLocal: true, reject: false, env: { AGENTBOX_TEST_IMAGE: image } });
  const report = reportSchema.parse(JSON.parse(readFileSync(REPORT, "utf8")));
  // A file that does not even load has no tests to count, but it has failed.
  const failed = report.success ? report.numFailedTests : Math.max(1, report.numFailedTests);
  return { passed: report.numPassedTests, failed, skipped: report.numPendingTests + report.numTodoTests };
}

await runScript(async () => ((await main()) ? 0 : 1));
