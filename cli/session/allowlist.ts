import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { type AgentProfile, findAgentProfile } from "../../policy/agent-profile.ts";
import { buildEffectiveList, type EffectiveList } from "../../policy/effective-list.ts";
import { type Complaint, ConfigError } from "../../policy/errors.ts";
import { parsePreset } from "../../policy/preset.ts";
import { parseGithubFile, parseServicesFile, refuseUnreadable } from "../../policy/services-file.ts";
import { loadPublicSuffixTest } from "../../policy/wildcard-check.ts";

const servicesFile = "allowlists/services.sh";
const githubFile = "allowlists/github.sh";
const presetDirectory = "allowlists/presets";

/**
 * Works out the effective allowlist by the same code as the box does, from the files that the image
 * carries. Throws ConfigError with every mistake in them, so that none shows only after a build.
 */
export async function readEffectiveList(root: string, profile: AgentProfile): Promise<EffectiveList> {
  return await readAll(() => readServices(root, profile), [() => readGithub(root)]);
}

/** Reads all lists of the installation, presets as well. Throws ConfigError with every mistake in them. */
export async function checkAllowlists(root: string): Promise<void> {
  const names = await readdir(path.join(root, presetDirectory)).catch(() => []);
  const presets = names.filter((name) => name.endsWith(".sh")).map((name) => async () => {
    const file = `${presetDirectory}/${name}`;
    return parsePreset(path.basename(name, ".sh"), file, await readList(root, file));
  });
  await readAll(() => readServices(root, findAgentProfile("shell")), [() => readGithub(root), ...presets]);
}

async function readServices(root: string, profile: AgentProfile): Promise<EffectiveList> {
  const services = parseServicesFile(servicesFile, await readList(root, servicesFile));
  const agentWords = profile.hosts.map(({ entry }) => ({ text: entry }));
  const isPublicSuffix = await loadPublicSuffixTest([...services.allowed, ...agentWords].map(({ text }) => text));
  return buildEffectiveList({
    sources: [
      { label: servicesFile, surface: "allowlist-file", words: services.allowed },
      { label: `agent ${profile.name}`, surface: "allowlist-file", words: agentWords },
    ],
    critical: services.critical,
    agent: { name: profile.name, critical: profile.critical },
    isPublicSuffix,
  });
}

async function readGithub(root: string): Promise<void> {
  parseGithubFile(githubFile, await readList(root, githubFile));
}

async function readList(root: string, file: string): Promise<string> {
  try {
    return await readFile(path.join(root, file), "utf8");
  } catch (error) {
    throw refuseUnreadable(file, error);
  }
}

/** Runs every reader and returns what the first one read; the mistakes of all of them are one ConfigError. */
async function readAll<T>(first: () => Promise<T>, others: readonly (() => Promise<unknown>)[]): Promise<T> {
  const complaints: Complaint[] = [];
  const attempt = async <R>(read: () => Promise<R>): Promise<R | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      complaints.push(...error.complaints);
      return undefined;
    }
  };
  const value = await attempt(first);
  for (const other of others) await attempt(other);
  if (value === undefined || complaints.length > 0) throw new ConfigError(complaints);
  return value;
}
