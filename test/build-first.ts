import { execFileSync } from "node:child_process";
import path from "node:path";

/**
 * Builds the programs before any test runs: tests of the command line and of boxes run what users run,
 * which also starts in half the time of its sources.
 */
export default function buildFirst(): void {
  execFileSync(process.execPath, [path.join(import.meta.dirname, "../scripts/build.ts")], { stdio: "inherit" });
}
