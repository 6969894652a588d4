import { readFileSync } from "node:fs";
import type { Range } from "../policy/address.ts";
import { buildEffectiveList, type EffectiveList, listsName, namesToResolve } from "../policy/effective-list.ts";
import type { BoxSpec } from "../policy/box-spec.ts";
import { parseGithubFile, parseServicesFile, refuseUnreadable } from "../policy/services-file.ts";
import { loadPublicSuffixTest } from "../policy/wildcard-check.ts";

/** The policy of one box: what may be reached, which names to ask for, and GitHub's blocks while they apply. */
export type BoxPolicy = { list: EffectiveList; names: string[]; githubRanges: readonly Range[] };

/** Where the image keeps the owner's lists. */
export const ALLOWLIST_DIR = "/usr/local/share/agentbox/allowlists";

/**
 * Reads `services.sh` and `github.sh` from `dir` and builds the effective list for the agent of `spec`.
 *
 * Errors: ConfigError with every mistake, each with file and line.
 */
export async function loadPolicy({ policy: document }: Pick<BoxSpec, "policy">, dir: string): Promise<BoxPolicy> {
  const { allowed, critical } = parseServicesFile("allowlists/services.sh", readList(dir, "services.sh"));
  const github = parseGithubFile("allowlists/github.sh", readList(dir, "github.sh"));
  const agentWords = document.agent.hosts.map((text) => ({ text }));
  const isPublicSuffix = await loadPublicSuffixTest([...allowed, ...agentWords].map(({ text }) => text));
  const list = buildEffectiveList({
    sources: [
      { label: "allowlists/services.sh", surface: "allowlist-file", words: allowed },
      { label: `agent ${document.agent.name}`, surface: "allowlist-file", words: agentWords },
    ],
    critical,
    agent: document.agent,
    isPublicSuffix,
  });
  return {
    list,
    names: [...new Set(list.entries.flatMap(({ entry }) => namesToResolve(entry)))],
    githubRanges: listsName(list, "github.com", 443) ? github.ranges : [],
  };
}

function readList(dir: string, name: string): string {
  try {
    return readFileSync(`${dir}/${name}`, "utf8");
  } catch (error) {
    throw refuseUnreadable(`allowlists/${name}`, error);
  }
}
