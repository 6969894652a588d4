import { lstatSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Host } from "../host.ts";
import { writeWhole } from "../session/whole-file.ts";
import { errorCode } from "../workspace/path-fact.ts";
import { type ConfigText, readConfigText } from "./config-text.ts";
import { withHeldDirectory } from "./held-directory.ts";
import { CONFIG_FILE, readConfig, type SessionConfig, USER_CONFIG_NAME } from "./read-config.ts";
import { judgeTrust } from "./trust.ts";
import { writeTrusted } from "./trust-store.ts";

/** What an edit of the configuration came to. `file` is its name in messages. */
export type EditOutcome = { config: SessionConfig; file: string; changed: boolean; created: boolean; trusted: boolean };

type EditQuery = {
  host: Host;
  config: SessionConfig;
  /** Makes the new text; `file` is the name to use in messages. */
  edit: (text: string, file: string) => string;
};

/**
 * Edits the configuration file that counts, or makes the project's where there is none, and reads everything
 * anew. The edit is trusted where the text before it was: who edits by hand what nobody agreed to still has to
 * agree. A text that would not be understood any more is not written. To be called under the policy lock.
 */
export async function editConfig({ host, config, edit }: EditQuery): Promise<EditOutcome> {
  const { projectPath } = config;
  const before = judgeTrust(host, config);
  const target = findTarget(host, config);
  const found = readConfigText(target);
  const text = edit(found?.text ?? "", target.name);
  const outcome = { file: target.name, created: found === undefined };
  if (text === found?.text) return { ...outcome, config, changed: false, trusted: before.kind !== "untrusted" };
  await writeConfigFile(target, text);
  const edited = await readConfig({ host, projectPath });
  const trusted = before.kind !== "untrusted";
  if (edited.ofProject && trusted) await writeTrusted(host.agentboxHome, projectPath, edited.files);
  return { ...outcome, config: edited, changed: true, trusted };
}

/** One of the two configuration files; `within` is the directory that the project's has to lie in, no link on the way. */
type ConfigFile = Omit<ConfigText, "text"> & { within?: string };

/** Names one of the two configuration files. */
export function describeConfigFile({ agentboxHome }: Pick<Host, "agentboxHome">, projectPath: string, ofUser: boolean): ConfigFile {
  if (ofUser) return { name: USER_CONFIG_NAME, path: join(agentboxHome, "config.toml") };
  return { name: CONFIG_FILE, path: join(projectPath, CONFIG_FILE), within: dirname(join(projectPath, CONFIG_FILE)) };
}

/**
 * Writes a configuration file, whole or not at all, with the mode it had. The project's is never written through a
 * link, in its place or anywhere above it: a box of a parent directory can exchange what lies above.
 */
export async function writeConfigFile(file: ConfigFile, text: string): Promise<void> {
  const { name, path, within } = file;
  const directory = dirname(path);
  if (within === undefined) {
    // The user's own directory may lie wherever the user put it.
    await mkdir(directory, { recursive: true });
    return await replaceFile(path, text);
  }
  await withHeldDirectory({ directory: dirname(within), name }, async (held) => await makeDirectory(join(held, basename(within))));
  await withHeldDirectory({ directory: within, name }, async (held) => await replaceFile(join(held, basename(path)), text));
}

/** What stands there already is judged when it is opened. */
async function makeDirectory(directory: string): Promise<void> {
  await mkdir(directory).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
}

async function replaceFile(path: string, text: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  await writeWhole(path, text, found?.isFile() === true ? { exact: found.mode & 0o777 } : 0o644);
}

function findTarget(host: Host, { projectPath, ofProject, source }: SessionConfig): ConfigFile {
  return describeConfigFile(host, projectPath, !ofProject && source !== undefined);
}
