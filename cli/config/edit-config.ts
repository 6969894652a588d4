import { lstatSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import type { Host } from "../host.ts";
import { writeWhole } from "../session/whole-file.ts";
import { errorCode } from "../workspace/path-fact.ts";
import { type ConfigText, readConfigText } from "./config-text.ts";
import { withHeldDirectory } from "./held-directory.ts";
import { CONFIG_FILE, readConfig, type SessionConfig, USER_CONFIG_NAME } from "./read-config.ts";
import { requireTrust } from "./trust.ts";
import { writeTrusted } from "./trust-store.ts";

/** What an edit of the configuration came to. `file` is its name in messages. */
export type EditOutcome = { config: SessionConfig; file: string; changed: boolean; created: boolean };

type EditQuery = {
  host: Host;
  config: SessionConfig;
  /** Makes the new text; `file` is the name to use in messages. */
  edit: (text: string, file: string) => string;
};

/**
 * Edits the configuration file that counts, or makes the project's where there is none. What is edited, written and
 * trusted is the text that was judged, with the files that it named then: nothing is read again, since an agent may
 * write meanwhile. Throws ConfigError, and writes nothing, for a file that nobody agreed to, for one that is no
 * longer what was read, and for a text that would not be understood. To be called under the policy lock.
 */
export async function editConfig({ host, config, edit }: EditQuery): Promise<EditOutcome> {
  const { projectPath, texts } = config;
  await requireTrust({ host, config, ask: undefined });
  const ofUser = !config.ofProject && config.source !== undefined;
  const judged = ofUser ? texts.user : texts.project;
  const target = describeConfigFile(host, projectPath, ofUser);
  const text = edit(judged?.text ?? "", target.name);
  const outcome = { file: target.name, created: judged === undefined };
  if (text === judged?.text) return { ...outcome, config, changed: false };
  const written: ConfigText = { name: target.name, path: target.path, text };
  const edited = await readConfig({ host, projectPath, texts: { ...texts, [ofUser ? "user" : "project"]: written } });
  await writeConfigFile(target, { before: judged?.text, text });
  if (edited.ofProject) await writeTrusted(host.agentboxHome, projectPath, edited.files);
  return { ...outcome, config: edited, changed: true };
}

/** One of the two configuration files; `within` is the directory that the project's has to lie in, no link on the way. */
type ConfigFile = Omit<ConfigText, "text"> & { within?: string };

/** Names one of the two configuration files. */
export function describeConfigFile({ agentboxHome }: Pick<Host, "agentboxHome">, projectPath: string, ofUser: boolean): ConfigFile {
  if (ofUser) return { name: USER_CONFIG_NAME, path: join(agentboxHome, "config.toml") };
  return { name: CONFIG_FILE, path: join(projectPath, CONFIG_FILE), within: dirname(join(projectPath, CONFIG_FILE)) };
}

/** The text that is written, and the one that it replaces: undefined where there was no file. */
export type ConfigChange = { before: string | undefined; text: string };

/**
 * Writes a configuration file, whole or not at all, with the mode it had. The project's is never written through a
 * link, in its place or anywhere above it: a box of a parent directory can exchange what lies above. Throws
 * ConfigError for a file that is not `before` any more.
 */
export async function writeConfigFile(file: ConfigFile, change: ConfigChange): Promise<void> {
  const { name, path, within } = file;
  const directory = dirname(path);
  if (within === undefined) {
    // The user's own directory may lie wherever the user put it.
    await mkdir(directory, { recursive: true });
    return await replaceFile({ name, path }, change);
  }
  await withHeldDirectory({ directory: dirname(within), name }, async (held) => await makeDirectory(join(held, basename(within))));
  await withHeldDirectory({ directory: within, name }, async (held) => await replaceFile({ name, path: join(held, basename(path)) }, change));
}

/** What stands there already is judged when it is opened. */
async function makeDirectory(directory: string): Promise<void> {
  await mkdir(directory).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
}

async function replaceFile(file: Pick<ConfigFile, "name" | "path">, { before, text }: ConfigChange): Promise<void> {
  if (readConfigText(file)?.text !== before) {
    throw new ConfigError({ what: "the file was changed while this command looked at it, and was left as it is", expected: "the file as it was read", fix: "look at it, and try again", place: { file: file.name } });
  }
  const found = lstatSync(file.path, { throwIfNoEntry: false });
  await writeWhole(file.path, text, found?.isFile() === true ? { exact: found.mode & 0o777 } : 0o644);
}
