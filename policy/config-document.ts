import { parseAllowFile } from "./config-allow-file.ts";
import type { ParsedConfig } from "./config-file.ts";
import { decideMode, isOnlyOpenRule } from "./config-mode.ts";
import { renderHostTable } from "./config-words.ts";
import { ConfigError } from "./errors.ts";
import { buildNameWall } from "./name-wall.ts";
import { quote } from "./parsed.ts";
import { emptyDocument, type DocumentWord, type PolicyDocument, type PrivateHost } from "./policy-document.ts";
import type { Preset } from "./preset.ts";

export { decideMode } from "./config-mode.ts";

/** What changed a policy while a box runs: words of `policy allow` and `policy deny`; `until` is Unix time in ms. */
type SessionChanges = { allow: readonly DocumentWord[]; deny: readonly DocumentWord[] };

export type DocumentInput = {
  /** The project's file; where there is one, it counts and not the user's. */
  project: ParsedConfig | undefined;
  /** The user's own file, whose block_hosts always apply. */
  user: ParsedConfig | undefined;
  presets: readonly Preset[];
  /** The file that `allow_file` of the counting file names, already read. */
  allowFile: { name: string; text: string } | undefined;
  agent: PolicyDocument["agent"];
  session?: SessionChanges | undefined;
};

type Source = PolicyDocument["sources"][number];
type Blocks = PolicyDocument["blocks"][number];

/**
 * Makes the policy document of a box of the configuration and of what was changed for the session. A
 * configuration that closes the network makes one that allows nothing. Throws ConfigError for mistakes in
 * the allow_file, for one that was not read, and for unknown presets.
 */
export function buildDocument({ project, user, presets, allowFile, agent, session }: DocumentInput): PolicyDocument {
  const chosen = project ?? user;
  const network = chosen?.config.network ?? {};
  const owners = [project, user].filter((owner) => owner !== undefined);
  const hosts = chosen === undefined ? { words: [], private: [] } : readHosts(chosen);
  const { mode, why } = decideMode(chosen?.config ?? {});
  const closed = mode === "none";
  const sources: Source[] = [
    { label: chosen?.file ?? "", surface: "list", words: hosts.words },
    ...readAllowFile(chosen, allowFile),
    ...readPresets(chosen, presets),
    { label: chosen?.file ?? "", surface: "list", words: chosen === undefined ? [] : placeWords(chosen, ["network_proxy", "policy", "allowed_domains"], chosen.config.network_proxy?.policy?.allowed_domains) },
    { label: "policy allow", surface: "list", words: [...(session?.allow ?? [])] },
  ];
  const blocks: Blocks[] = [
    ...(closed ? [{ label: why, words: [{ text: "*" }] }] : []),
    ...owners.map((owner) => ({ label: owner.file, words: placeWords(owner, ["network", "block_hosts"], owner.config.network?.block_hosts) })),
    ...owners.map((owner) => ({ label: owner.file, words: placeWords(owner, ["network_proxy", "policy", "denied_domains"], owner.config.network_proxy?.policy?.denied_domains) })),
    { label: "policy deny", words: [...(session?.deny ?? [])] },
  ];
  const critical = network.critical === undefined || chosen === undefined ? null : placeWords(chosen, ["network", "critical"], network.critical);
  // Where the firewall stays on all the same (AGENTBOX_FIREWALL=1, required, mode), this rule must not open it again.
  const rules = isOnlyOpenRule(network.rules ?? []) ? [] : (network.rules ?? []);
  return {
    ...emptyDocument(agent),
    sources: sources.filter(({ words }) => words.length > 0),
    blocks: blocks.filter(({ words }) => words.length > 0),
    rules: rules.map((rule, index) => ({ ...rule, place: chosen?.placeOf(["network", "rules", index]) })),
    private: hosts.private,
    allowPrivate: chosen === undefined ? [] : [...placeWords(chosen, ["network", "allow_private"], network.allow_private), ...placeWords(chosen, ["network_proxy", "policy", "allow_private"], chosen.config.network_proxy?.policy?.allow_private)],
    // What cannot be reached cannot be asked for.
    critical: closed ? [] : critical,
    ssh: closed ? "off" : (network.ssh ?? "listed"),
    report: !closed && (network.report ?? false),
    enforcement: network.enforcement ?? "name",
    base: !closed && network.policy?.mode === "deny-list" ? "deny-list" : "allow-list",
    nameWall: buildNameWall(chosen),
  };
}

/** The elements of allow_hosts: entries as words of one grammar, and those that open private addresses apart. */
function readHosts({ config, placeOf }: ParsedConfig): { words: DocumentWord[]; private: PrivateHost[] } {
  const found: { words: DocumentWord[]; private: PrivateHost[] } = { words: [], private: [] };
  (config.network?.allow_hosts ?? []).forEach((host, index) => {
    const place = placeOf(["network", "allow_hosts", index]);
    if (typeof host === "string") {
      found.words.push({ text: host, place });
    } else if (host.private === true) {
      found.private.push({ host: host.host, ports: host.ports ?? [], place });
    } else {
      const word = renderHostTable(host);
      // The schema refused it already; a word that is not understood opens nothing.
      if (!word.ok) throw new ConfigError({ ...word.complaint, place });
      found.words.push({ text: word.value, place });
    }
  });
  return found;
}

function readAllowFile(chosen: ParsedConfig | undefined, allowFile: DocumentInput["allowFile"]): Source[] {
  const named = chosen?.config.network?.allow_file;
  if (named === undefined) return [];
  if (allowFile !== undefined) return [{ label: `allow_file ${allowFile.name}`, surface: "list", words: parseAllowFile({ file: allowFile.name, text: allowFile.text }) }];
  throw new ConfigError({ what: `allow_file ${quote(named)} was not read`, expected: "a file of one host a line", fix: "make it, or take the key out", place: chosen?.placeOf(["network", "allow_file"]) });
}

function readPresets(chosen: ParsedConfig | undefined, presets: readonly Preset[]): Source[] {
  return (chosen?.config.network?.presets ?? []).map((id, index) => {
    const preset = presets.find((candidate) => candidate.id === id);
    if (preset === undefined) {
      throw new ConfigError({ what: `there is no preset ${quote(id)}`, expected: presets.map((candidate) => candidate.id).join(", "), fix: "correct the name", place: chosen?.placeOf(["network", "presets", index]) });
    }
    return { label: `preset ${id}`, surface: "allowlist-file", words: preset.entries.map(({ text, place }) => ({ text, place })) };
  });
}

function placeWords({ placeOf }: ParsedConfig, path: readonly string[], words: readonly string[] = []): DocumentWord[] {
  return words.map((text, index) => ({ text, place: placeOf([...path, index]) }));
}
