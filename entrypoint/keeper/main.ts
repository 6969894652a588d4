import { appendFileSync, readFileSync, statSync } from "node:fs";
import { DECISION_LOG_DIR } from "../../policy/box-spec.ts";
import { KnownError } from "../../policy/errors.ts";
import { Keeper } from "./keeper.ts";
import { parseJson } from "./json-lines.ts";
import type { Door } from "./listen.ts";
import { giveSignsOfLife } from "./sign-of-life.ts";
import { keeperStartSchema } from "./start-message.ts";

const LOG_FILE = `${DECISION_LOG_DIR}/keeper.log`;
const LOG_LIMIT_BYTES = 1024 * 1024;
/** Where the entrypoint writes what the keeper is told. */
const START_FD = 3;

/** The keeper's process: reads what it is told, holds the policy until the box ends. Its end opens nothing. */
export async function main(door: Door): Promise<void> {
  process.umask(0o077);
  // Terminals and their signals are the agent's; the engine ends this process with the box.
  for (const signal of ["SIGINT", "SIGHUP", "SIGQUIT"] as const) process.on(signal, () => undefined);
  process.on("uncaughtException", (error) => fail(error));
  try {
    // Stays open: its end tells the entrypoint at once that this process has ended.
    const given = readFileSync(START_FD, "utf8");
    // The entrypoint ended before it had anything to say.
    if (given === "") return process.exit(0);
    await Keeper.open(keeperStartSchema.parse(parseJson(given)), door);
    giveSignsOfLife();
  } catch (error) {
    fail(error);
  }
}

function fail(error: unknown): never {
  const text = error instanceof KnownError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  try {
    if ((statSync(LOG_FILE, { throwIfNoEntry: false })?.size ?? 0) < LOG_LIMIT_BYTES) appendFileSync(LOG_FILE, `${new Date().toISOString()} ${text}\n`);
  } catch {
    // A full disk must not keep this process from ending.
  }
  process.exit(70);
}
