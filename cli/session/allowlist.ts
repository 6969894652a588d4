import { readFile } from "node:fs/promises";
import path from "node:path";
import type { AgentProfile } from "../../policy/agent-profile.ts";
import { buildEffectiveList, type EffectiveList } from "../../policy/effective-list.ts";
import { parseServicesFile } from "../../policy/services-file.ts";
import { loadPublicSuffixTest } from "../../policy/wildcard-check.ts";

/**
 * Works out the effective allowlist by the same code as the box does, from the files that the image
 * carries. Throws ConfigError with every mistake in them.
 */
export async function readEffectiveList(root: string, profile: AgentProfile): Promise<EffectiveList> {
  const file = "allowlists/services.sh";
  const services = parseServicesFile(file, await readFile(path.join(root, file), "utf8"));
  const agentWords = profile.hosts.map(({ entry }) => ({ text: entry }));
  const isPublicSuffix = await loadPublicSuffixTest([...services.allowed, ...agentWords].map(({ text }) => text));
  return buildEffectiveList({
    sources: [
      { label: file, surface: "allowlist-file", words: services.allowed },
      { label: `agent ${profile.name}`, surface: "allowlist-file", words: agentWords },
    ],
    critical: services.critical,
    agent: { name: profile.name, critical: profile.critical },
    isPublicSuffix,
  });
}
