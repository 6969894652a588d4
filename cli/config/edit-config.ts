import { statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError } from "../../policy/errors.ts";
import type { Host } from "../host.ts";
import { writeWhole } from "../session/home.ts";
import { readPathFact } from "../workspace/path-fact.ts";
import { type ConfigText, readConfigText } from "./config-text.ts";
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

/** Writes a configuration file, whole or not at all, with the mode it had; never through a link in its place or above it. */
export async function writeConfigFile({ name, path, within }: ConfigFile, text: string): Promise<void> {
  const directory = dirname(path);
  // The user's own directory may lie wherever the user put it.
  if (within !== undefined && readPathFact(directory).kind === "link") throw new ConfigError({ what: `${directory} is a link`, expected: "a directory", fix: "replace the link by what it leads to", place: { file: name } });
  await mkdir(directory, { recursive: true });
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0o644;
  await writeWhole(path, text, mode & 0o777);
}

function findTarget(host: Host, { projectPath, ofProject, source }: SessionConfig): ConfigFile {
  return describeConfigFile(host, projectPath, !ofProject && source !== undefined);
}
