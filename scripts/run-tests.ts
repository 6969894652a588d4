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
  // Making the image is mostly waiting; what needs none runs meanwhile.
  const [{ image: testImage }, others] = await Promise.all([prepareTestImage({ agents: TEST_AGENTS }), runChecks()]);
  const parts = [others, await runVitest(["image.test"], { AGENTBOX_TEST_IMAGE: testImage }), await runBats([])];
  const sum = (key: keyof Counts): number => parts.reduce((total, part) => total + part[key], 0);
  const [passed, failed, skipped] = [sum("passed"), sum("failed"), sum("skipped")];
  process.stdout.write(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}\n`);
  return failed === 0 && (skipped === 0 || process.env["CI"] !== "true");
}

async function runChecks(): Promise<Counts> {
  await run("npm", ["run", "--silent", "types"]);
  await run("npm", ["run", "--silent", "lint"]);
  return runVitest(["--exclude", "**/*.image.test.ts"], {});
}

async function run(file: string, argv: readonly string[]): Promise<void> {
  await execa(file, argv, { cwd: ROOT, stdio: "inherit", preferLocal: true });
}

const reportSchema = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), numPendingTests: z.int(), numTodoTests: z.int(), success: z.boolean() });

async function runVitest(which: readonly string[], env: Readonly<Record<string, string>>): Promise<Counts> {
  rmSync(REPORT, { force: true });
  const argv = ["run", ...which, "--reporter=default", "--reporter=json", `--outputFile.json=${REPORT}`];
  await execa("vitest", argv, { cwd: ROOT, stdio: "inherit", preferLocal: true, reject: false, env });
  const report = reportSchema.parse(JSON.parse(readFileSync(REPORT, "utf8")));
  // A file that does not even load has no tests to count, but it has failed.
  const failed = report.success ? report.numFailedTests : Math.max(1, report.numFailedTests);
  return { passed: report.numPassedTests, failed, skipped: report.numPendingTests + report.numTodoTests };
}

await runScript(async () => ((await main()) ? 0 : 1));
