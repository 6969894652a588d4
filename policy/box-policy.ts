import type { Range } from "./address.ts";
import { buildEffectiveList, type EffectiveEntry, type EffectiveList, listsName, namesToResolve } from "./effective-list.ts";
import { buildPolicy, type Policy } from "./policy.ts";
import type { ListTexts, PolicyDocument } from "./policy-document.ts";
import { parseGithubFile, parseServicesFile } from "./services-file.ts";
import type { PublicSuffixTest } from "./wildcard-check.ts";

/** The policy of one box, ready to decide with: made by this one function on the host, in the entrypoint, the keeper and the proxy. */
export type BoxPolicy = {
  list: EffectiveList;
  policy: Policy;
  /** Names to resolve at the start, wildcards by their apex and probe. */
  names: readonly string[];
  /** Names whose addresses are opened whatever they are, each with its ports. */
  private: readonly { name: string; ports: readonly number[] }[];
  ssh: PolicyDocument["ssh"];
  report: boolean;
};

export type BoxPolicyInput = {
  document: PolicyDocument;
  lists: ListTexts;
  isPublicSuffix: PublicSuffixTest;
  /** Unix time in ms; words whose `until` lies before it are left out. */
  now: number;
};

/** Builds the policy of a box. Throws one ConfigError with every mistake, each with file and line. */
export function buildBoxPolicy({ document, lists, isPublicSuffix, now }: BoxPolicyInput): BoxPolicy {
  const { allowed, critical } = parseServicesFile("allowlists/services.sh", lists.services);
  const github = parseGithubFile("allowlists/github.sh", lists.github);
  const alive = <T extends { until?: number | undefined }>(words: readonly T[]): T[] => words.filter(({ until }) => until === undefined || until > now);
  const list = buildEffectiveList({
    sources: [
      { label: "allowlists/services.sh", surface: "allowlist-file", words: allowed },
      { label: `agent ${document.agent.name}`, surface: "allowlist-file", words: document.agent.hosts.map((text) => ({ text })) },
      ...document.sources.map(({ label, surface, words }) => ({ label, surface, words: alive(words) })),
    ],
    blocks: document.blocks.map(({ label, words }) => ({ label, words: alive(words) })),
    critical,
    agent: document.agent,
    isPublicSuffix,
  });
  const githubEntries = listsName(list, "github.com", 443) ? github.ranges.map((range) => describeRange(range)) : [];
  return {
    list,
    policy: buildPolicy({ blocks: list.blocks, list: [...list.entries, ...githubEntries] }),
    names: [...new Set(list.entries.flatMap(({ entry }) => namesToResolve(entry)))],
    private: [],
    ssh: document.ssh,
    report: document.report,
  };
}

/** GitHub's blocks are entries like any other, on the ports of git and of the web. */
function describeRange(range: Range): EffectiveEntry {
  return { entry: { target: { kind: "range", range }, ports: [22, 443], protocol: "web" }, text: range.text, origins: [{ label: "allowlists/github.sh", text: range.text }] };
}
