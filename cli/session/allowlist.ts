import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { type BoxPolicy, loadBoxPolicy } from "../../policy/box-policy.ts";
import { type Complaint, ConfigError } from "../../policy/errors.ts";
import { emptyDocument, type ListTexts, type PolicyDocument } from "../../policy/policy-document.ts";
import { parsePreset } from "../../policy/preset.ts";
import { refuseUnreadable } from "../../policy/services-file.ts";

const servicesFile = "allowlists/services.sh";
const githubFile = "allowlists/github.sh";
const presetDirectory = "allowlists/presets";

/** Reads the lists that the image carries, from the same files. Throws ConfigError for each that cannot be read. */
async function readListTexts(root: string): Promise<ListTexts> {
  const [services, github] = await readAll([() => readList(root, servicesFile), () => readList(root, githubFile)]);
  return { services: services ?? "", github: github ?? "" };
}

/**
 * Works out the policy of a box by the same code as the box does, from the files that the image
 * carries. Throws ConfigError with every mistake in them, so that none shows only after a build.
 */
export async function readBoxPolicy(root: string, document: PolicyDocument): Promise<BoxPolicy> {
  return await loadBoxPolicy({ document, lists: await readListTexts(root), now: Date.now() });
}

/** Reads all lists of the installation, presets as well. Throws ConfigError with every mistake in them. */
export async function checkAllowlists(root: string): Promise<void> {
  const names = await readdir(path.join(root, presetDirectory)).catch(() => []);
  const presets = names.filter((name) => name.endsWith(".sh")).map((name) => async () => {
    const file = `${presetDirectory}/${name}`;
    return parsePreset(path.basename(name, ".sh"), file, await readList(root, file));
  });
  await readAll<unknown>([() => readBoxPolicy(root, emptyDocument({ name: "shell", hosts: [], critical: null })), ...presets]);
}

async function readList(root: string, file: string): Promise<string> {
  try {
    return await readFile(path.join(root, file), "utf8");
  } catch (error) {
    throw refuseUnreadable(file, error);
  }
}

/** Runs every reader and returns what they read; the mistakes of all of them are one ConfigError. */
async function readAll<T>(readers: readonly (() => Promise<T>)[]): Promise<T[]> {
  const complaints: Complaint[] = [];
  const values: T[] = [];
  for (const read of readers) {
    try {
      values.push(await read());
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      complaints.push(...error.complaints);
    }
  }
  if (complaints.length > 0) throw new ConfigError(complaints);
  return values;
}
