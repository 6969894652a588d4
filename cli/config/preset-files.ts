import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { parsePreset, type Preset } from "../../policy/preset.ts";
import { refuseUnreadable } from "../../policy/services-file.ts";

const DIRECTORY = "allowlists/presets";

/** Reads the presets of the installation, ordered by id. Throws ConfigError for one that is unreadable or malformed. */
export async function readPresets(root: string): Promise<Preset[]> {
  const names = await readdir(join(root, DIRECTORY)).catch((error: unknown) => {
    throw refuseUnreadable(DIRECTORY, error);
  });
  const files = names.filter((name) => name.endsWith(".sh")).toSorted();
  return await Promise.all(
    files.map(async (name) => {
      const file = `${DIRECTORY}/${name}`;
      const text = await readFile(join(root, file), "utf8").catch((error: unknown) => {
        throw refuseUnreadable(file, error);
      });
      return parsePreset(basename(name, ".sh"), file, text);
    }),
  );
}
