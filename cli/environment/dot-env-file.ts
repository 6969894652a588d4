import { lstatSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { isWithin, readPathFact, resolvePath } from "../workspace/path-fact.ts";
import { readPlainFile } from "../workspace/plain-file.ts";
import { parseDotEnv, type PlacedVariable } from "./dot-env.ts";

const MAX_BYTES = 1024 * 1024;

export type DotEnvFile = { file: string; variables: PlacedVariable[] };

/**
 * Reads the project's `.env`; null when there is none. Throws a `ConfigError` that names every bad line.
 *
 * The agent of an earlier session may have left the file. A link out of the project would make the next
 * start hand over a file of the host (a credentials file reads like a `.env`), so it is refused, as is
 * anything but a plain file: a pipe would stop the start for ever.
 */
export function readDotEnv(projectPath: string): DotEnvFile | null {
  const file = join(projectPath, ".env");
  if (readPathFact(file).kind === "missing") return null;
  const real = resolvePath(file);
  if (real === null) throw refuse(file, "is a link that leads nowhere", "correct or remove it, or add --ignore-dot-env");
  if (!isWithin(real, projectPath)) {
    throw refuse(file, `leads out of the project, to ${quotePath(real)}`, "copy the file, name the variables with -e, or add --ignore-dot-env");
  }
  const { variables, complaints } = parseDotEnv(readText(file, real), file);
  if (complaints.length > 0) throw new ConfigError(complaints);
  return { file, variables };
}

function readText(file: string, real: string): string {
  const found = readPlainFile(real, MAX_BYTES);
  if ("flaw" in found) throw refuse(file, found.detail, `${FIXES[found.flaw]}, or add --ignore-dot-env`);
  // Another box of this project may swap directories meanwhile: what was opened must be what was checked.
  const now = lstatSync(real, { throwIfNoEntry: false });
  if (resolvePath(file) !== real || now?.ino !== found.inode || now.dev !== found.device) throw refuse(file, "changed while it was read", "start again");
  return found.content.toString("utf8");
}

const FIXES = { missing: "start again", special: "remove it", large: "shorten it", unreadable: "correct its permissions" } as const;

function refuse(file: string, what: string, fix: string): ConfigError {
  return new ConfigError({ what: `the file ${what}`, expected: "a text file of NAME=VALUE lines in the project", fix, place: { file } });
}
