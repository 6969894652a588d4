import { join } from "node:path";
import { z } from "zod";

/** What became of one target that was tried from inside a box. `connected`, `timeout`, or the code of the error. */
export type Outcome = { target: string; outcome: string; ms: number };

const outcomesSchema = z.array(z.strictObject({ target: z.string(), outcome: z.string(), ms: z.number() }));

const SCRIPT = join(import.meta.dirname, "../../fixtures/reach.mjs");

/** The argv that tries `targets` (`tcp:HOST:PORT`, `udp:HOST:PORT`). */
export function reachArgv(targets: readonly string[]): string[] {
  return [process.execPath, SCRIPT, ...targets];
}

export function parseOutcomes(stdout: string): Outcome[] {
  return outcomesSchema.parse(JSON.parse(stdout));
}
