import { ExecaError } from "execa";
import { KnownError } from "../policy/errors.ts";

/**
 * The edge of a script: runs `main`, which returns the exit code or nothing for 0. A known failure is its
 * message and its exit code, a program that failed is its own last word and 1; a bug keeps its stack.
 */
export async function runScript(main: () => Promise<number | void>): Promise<void> {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (error instanceof KnownError) process.exitCode = error.exitCode;
    else if (error instanceof ExecaError) process.exitCode = 1;
    else throw error;
    process.stderr.write(`${error instanceof ExecaError ? error.shortMessage : error.message}\n`);
  }
}
