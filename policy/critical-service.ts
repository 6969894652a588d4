import { parseEntry, renderEntry, type Entry } from "./entry.ts";
import type { Complaint, Place } from "./errors.ts";
import type { Origin, Removal } from "./effective-list.ts";
import { quote } from "./parsed.ts";
import { coversPattern } from "./pattern.ts";

/** A service that must resolve and answer or the start fails: one name, on one port. */
export type CriticalService = { name: string; port: number; origin: Origin };

/** The chosen agent and its critical host; null keeps the list as it was shipped. */
export type AgentCritical = { name: string; critical: string | null };

/** The critical host of the default agent, whose place another agent's host takes. */
const DEFAULT_AGENT_CRITICAL = "api.anthropic.com";

/** Says what keeps a critical service from being reached; undefined where nothing does. */
export type JudgeCritical = (name: string, port: number) => { why: string; fix: string } | undefined;

type CheckInput = {
  words: readonly { text: string; place?: Place | undefined }[];
  /** Names words without a place. */
  label: string;
  agent: AgentCritical | undefined;
  judge: JudgeCritical;
  complaints: Complaint[];
};

/**
 * Works out the critical services: the agent's host takes the place of api.anthropic.com where the
 * list names that. Each must be a plain name that `judge` finds open on every port it names; what is
 * wrong is added to `complaints`.
 */
export function checkCritical({ words, label, agent, judge, complaints }: CheckInput): readonly CriticalService[] {
  const services = new Map<string, CriticalService>();
  for (const word of words) {
    const place = word.place ?? { file: label };
    const replacement = word.text === DEFAULT_AGENT_CRITICAL ? agent?.critical : null;
    const text = replacement ?? word.text;
    const origin = { label: text === word.text ? place.file : `agent ${agent?.name ?? ""}`, text, place };
    const entry = parseEntry(text, "allowlist-file");
    if (!entry.ok) {
      complaints.push({ ...entry.complaint, place });
      continue;
    }
    const { target, ports, protocol } = entry.value;
    if (target.kind !== "pattern" || target.pattern.kind !== "exact" || protocol !== "web") {
      complaints.push({ what: `critical service ${quote(text)} is not a plain name`, expected: "one host name that speaks TLS, such as api.example.com", fix: "name one host of the service", place });
      continue;
    }
    const { name } = target.pattern;
    for (const port of ports) services.set(`${name}:${port}`, { name, port, origin });
    const missing = ports.flatMap((port) => {
      const verdict = judge(name, port);
      return verdict === undefined ? [] : [{ port, ...verdict }];
    });
    const [first] = missing;
    if (first === undefined) continue;
    const shown = renderEntry({ ...entry.value, ports: missing.map(({ port }) => port) });
    complaints.push({ what: `critical service ${quote(shown)} ${first.why}`, expected: "every critical service among the allowed ones", fix: first.fix, place });
  }
  return [...services.values()];
}

/** Judges by the entries of a list alone: one must hold the name on its port, and no block may have removed it. */
export function judgeByEntries({ entries, removed }: { entries: readonly { entry: Entry }[]; removed: readonly Removal[] }): JudgeCritical {
  return (name, port) => {
    const wanted: Entry = { target: { kind: "pattern", pattern: { kind: "exact", name } }, ports: [port], protocol: "web" };
    if (entries.some(({ entry }) => coversEntry(entry, wanted))) return undefined;
    const removal = removed.find(({ entry }) => coversEntry(entry, wanted));
    if (removal !== undefined) return { why: `was removed by the block ${quote(removal.by.text)}`, fix: "lift the block, or remove the name from CRITICAL_SERVICES" };
    return { why: "is not in the effective list", fix: `add ${quote(renderEntry(wanted))} to ALLOWED_SERVICES, or remove it from CRITICAL_SERVICES` };
  };
}

function coversEntry(outer: Entry, inner: Entry): boolean {
  if (outer.target.kind !== "pattern" || inner.target.kind !== "pattern" || outer.protocol !== inner.protocol) return false;
  return coversPattern(outer.target.pattern, inner.target.pattern) && inner.ports.every((port) => outer.ports.includes(port));
}
