import type { PlacedWord } from "./allowlist-file.ts";
import { MAX_GLOBS, parseBlock, removesEntry, renderBlock, type Block } from "./block.ts";
import { checkCritical, judgeByEntries, type AgentCritical, type CriticalService } from "./critical-service.ts";
import { parseEntry, renderEntry, renderTarget, type Entry } from "./entry.ts";
import { ConfigError, renderPlace, type Complaint, type Place } from "./errors.ts";
import { matchesPattern, wildcardSuffix, type Surface } from "./pattern.ts";
import { refuseOpenWildcard, type PublicSuffixTest } from "./wildcard-check.ts";

/** One contributor of entries, such as `allowlists/services.sh`, `agent codex` or `preset rust`. */
type EntrySource = { label: string; surface: Surface; words: readonly SourceWord[] };

/** A word with its place in a file; without one it comes from data of the product or the command line. */
type SourceWord = { text: string; place?: Place | undefined };

/** Who asked for an entry, with the word as it was written. */
export type Origin = { label: string; text: string; place?: Place | undefined };

export type EffectiveEntry = { entry: Entry; text: string; origins: readonly Origin[] };
export type EffectiveBlock = { block: Block; text: string; origin: Origin };
export type Removal = EffectiveEntry & { by: EffectiveBlock };

/**
 * What may be reached, and why: `entries` after removal, `removed` with the block that took each away,
 * `blocks` (deny rules of their own, which win over every entry), and the critical services.
 */
export type EffectiveList = {
  entries: readonly EffectiveEntry[];
  removed: readonly Removal[];
  blocks: readonly EffectiveBlock[];
  critical: readonly CriticalService[];
};

export type EffectiveListInput = {
  sources: readonly EntrySource[];
  blocks?: readonly { label: string; words: readonly SourceWord[] }[];
  critical: readonly PlacedWord[];
  agent?: AgentCritical;
  isPublicSuffix: PublicSuffixTest;
};

/** Name under which a wildcard is asked for, so that a wildcard DNS record shows itself (with the apex). */
export const WILDCARD_PROBE = "agentbox-wildcard-probe";

/**
 * Computes (all sources) − (blocks). The same target from several sources becomes one entry with the
 * union of the ports and all origins. Throws one `ConfigError` with every malformed word, every
 * dangerous wildcard and every critical service that the list does not hold.
 */
export function buildEffectiveList(input: EffectiveListInput): EffectiveList {
  const complaints: Complaint[] = [];
  const list = collectEntries(input, complaints);
  const critical = checkCritical({ words: input.critical, label: "CRITICAL_SERVICES", agent: input.agent, judge: judgeByEntries(list), complaints });
  if (complaints.length > 0) throw new ConfigError(complaints);
  return { ...list, critical };
}

/** Computes (all sources) − (blocks) and adds what is wrong to `complaints`; critical services are not asked for. */
export function collectEntries(input: Omit<EffectiveListInput, "critical" | "agent">, complaints: Complaint[]): Omit<EffectiveList, "critical"> {
  const merged = mergeEntries(input, complaints);
  const blocks = parseBlocks(input, complaints);
  const entries: EffectiveEntry[] = [];
  const removed: Removal[] = [];
  for (const entry of merged) {
    const by = blocks.find(({ block }) => removesEntry(block, entry.entry));
    if (by === undefined) entries.push(entry);
    else removed.push({ ...entry, by });
  }
  return { entries, removed, blocks };
}

/** Tells whether an entry lets this canonical name through on this port (blocks are not asked: see `decide`). */
export function listsName({ entries }: Pick<EffectiveList, "entries">, name: string, port: number): boolean {
  return entries.some(({ entry: { target, ports } }) => target.kind === "pattern" && matchesPattern(target.pattern, name) && ports.includes(port));
}

/** The names to resolve for an entry: itself, or for a wildcard the apex and a probe below it; none for a range. */
export function namesToResolve({ target }: Pick<Entry, "target">): readonly string[] {
  if (target.kind === "range") return [];
  if (target.pattern.kind === "exact") return [target.pattern.name];
  const suffix = wildcardSuffix(target.pattern);
  if (suffix === undefined) return [];
  const probe = `${WILDCARD_PROBE}.${suffix}`;
  return probe.length <= 253 ? [suffix, probe] : [suffix];
}

/** An origin as a user reads it: `allowlists/services.sh:12` or `agent codex`. */
export function renderOrigin({ label, place }: Origin): string {
  if (place === undefined) return label;
  return place.file === label ? renderPlace({ file: place.file, ...(place.line === undefined ? {} : { line: place.line }) }) : `${label} (${renderPlace(place)})`;
}

function mergeEntries({ sources, isPublicSuffix }: Pick<EffectiveListInput, "sources" | "isPublicSuffix">, complaints: Complaint[]): readonly EffectiveEntry[] {
  const merged = new Map<string, { entry: Entry; origins: Origin[] }>();
  for (const { label, surface, words } of sources) {
    for (const word of words) {
      const result = parseEntry(word.text, surface);
      const pattern = result.ok && result.value.target.kind === "pattern" ? result.value.target.pattern : undefined;
      const refusal = result.ok ? pattern && refuseOpenWildcard(pattern, isPublicSuffix) : result;
      if (refusal !== undefined) complaints.push(placed(refusal.complaint, label, word));
      if (!result.ok || refusal !== undefined) continue;
      const { target, protocol, ports } = result.value;
      const key = `${protocol} ${renderTarget(target)}`;
      const earlier = merged.get(key);
      const all = new Set([...(earlier?.entry.ports ?? []), ...ports]);
      const entry = { target, protocol, ports: [...all].toSorted((a, b) => a - b) };
      merged.set(key, { entry, origins: [...(earlier?.origins ?? []), { label, ...word }] });
    }
  }
  return [...merged.values()].map(({ entry, origins }) => ({ entry, text: renderEntry(entry), origins }));
}

function parseBlocks({ blocks = [] }: Pick<EffectiveListInput, "blocks">, complaints: Complaint[]): readonly EffectiveBlock[] {
  const found: EffectiveBlock[] = [];
  for (const { label, words } of blocks) {
    for (const word of words) {
      const block = parseBlock(word.text);
      if (block.ok) found.push({ block: block.value, text: renderBlock(block.value), origin: { label, ...word } });
      else complaints.push(placed(block.complaint, label, word));
    }
  }
  const globs = found.filter(({ block }) => block.kind === "glob");
  const tooMany = globs[MAX_GLOBS];
  if (tooMany !== undefined) {
    const complaint = { what: `${globs.length} block entries with a * inside`, expected: `at most ${MAX_GLOBS}`, fix: "write *.domain where a whole domain is meant" };
    complaints.push(placed(complaint, tooMany.origin.label, tooMany.origin));
  }
  return found;
}

function placed(complaint: Complaint, label: string, word: SourceWord): Complaint {
  return { ...complaint, place: word.place ?? { file: label } };
}
