import { dirname, join, relative, resolve } from "node:path";
import { type Complaint, ConfigError } from "../../policy/errors.ts";
import { quotePath } from "../../policy/parsed.ts";
import { expandTilde } from "../workspace/git-config.ts";
import { isWithin } from "../workspace/path-fact.ts";
import { type ConfigText, readConfigText, resolveParent } from "./config-text.ts";

type NamedFileQuery = {
  /** The key that names it. */
  key: "allow_file" | "ca_file";
  /** As it is written. */
  named: string;
  /** The file that names it, and where in it. */
  by: ConfigText;
  place: NonNullable<Complaint["place"]>;
  home: string;
  project: string;
  /** Directories that a box of this project may write. */
  writableRoots: readonly string[];
  /** The directory in them that no box may write. */
  readOnly: string;
};

/**
 * Reads a file that a configuration names, relative to the file that names it. One that a box could write
 * is refused, since its agent would decide what the next box reaches and whom it believes. Throws
 * ConfigError with the place of the key.
 */
export function readNamedFile({ key, named, by, place, home, project, writableRoots, readOnly }: NamedFileQuery): ConfigText {
  const path = resolveParent(resolve(dirname(by.path), expandTilde(named, home)));
  const open = writableRoots.find((root) => isWithin(path, root));
  if (open !== undefined && !isWithin(path, readOnly)) {
    throw new ConfigError({
      what: `${key} ${quotePath(named)} lies in ${quotePath(open)}, which boxes may write`,
      expected: "a file that no box can change",
      fix: `move it to ${quotePath(join(project, ".agentbox"))}, or out of the directories that boxes write`,
      place,
    });
  }
  const file = readConfigText({ name: isWithin(path, project) ? relative(project, path) : path, path, kind: key === "ca_file" ? "certificates" : "text" });
  if (file !== undefined) return file;
  throw new ConfigError({ what: `${key} ${quotePath(named)} does not exist`, expected: `a file at ${quotePath(path)}`, fix: "make it, or take the key out", place });
}
