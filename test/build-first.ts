import { execFileSync } from "node:child_process";
import path from "node:path";
import { build } from "esbuild";
import { renderOptions } from "../scripts/build.ts";

/**
 * Builds the programs before any test runs: tests of the command line and of boxes run what users run, which also
 * starts in half the time of its sources. So does the lab, of which several hundred are started.
 */
export default async function buildFirst(): Promise<void> {
  execFileSync(process.execPath, [path.join(import.meta.dirname, "../scripts/build.ts")], { stdio: "inherit" });
  // It looks for a file beside its own.
  await build({ ...renderOptions({ entry: "test/lab/main.ts", output: "tests/lab.mjs" }), external: ["ssh2"] });
}
