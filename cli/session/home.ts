import { statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { ConfigError } from "../../policy/errors.ts";

/** Returns the directory that holds everything the product keeps on the host. */
export function findAgentboxHome(home: string): string {
  return path.join(home, ".agentbox");
}

/** Tells whether something can be kept below a home directory: a relative or empty one would lead into the project. */
export function isUsableHome(home: string): boolean {
  return path.isAbsolute(home) && statSync(home, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Throws ConfigError for a home directory that nothing can be kept in, before anything is written. */
export function requireHome(home: string): void {
  if (!isUsableHome(home)) {
    throw new ConfigError({ what: `HOME is ${JSON.stringify(home)}`, expected: "the absolute path of a directory that exists", fix: "set HOME to your home directory" });
  }
  const directory = findAgentboxHome(home);
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === false) throw refuseDirectory(directory, "it is not a directory");
}

/** Makes a directory that only its owner may enter, and those above it that are missing. */
export async function makePrivateDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw refuseDirectory(directory, error instanceof Error && "code" in error ? String(error.code) : String(error));
  }
}

function refuseDirectory(directory: string, why: string): ConfigError {
  return new ConfigError({ what: `agentbox cannot keep its state here (${why})`, expected: "a directory that you may write", fix: "move away what is there, or correct its permissions", place: { file: directory } });
}
