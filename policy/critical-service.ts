import type { PlacedWord } from "./allowlist-file.ts";
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

type CheckInput = {
  list: { entries: readonly { entry: Entry }[]; removed: readonly Removal[] };
  words: readonly PlacedWord[];
  agent: AgentCritical | undefined;
  complaints: Complaint[];
};

/**
 * Works out the critical services: the agent's host takes the place of api.anthropic.com where the
 * list names that. Each must be a plain name that the effective list holds on every port it names;
 * what is wrong is added to `complaints`.
 */
export function checkCritical({ list, words, agent, complaints }: CheckInput): readonly CriticalService[] {
  const services = new Map<string, CriticalService>();
  for (const word of words) {
    const replacement = word.text === DEFAULT_AGENT_CRITICAL ? agent?.critical : null;
    const text = replacement ?? word.text;
    const origin = { label: text === word.text ? word.place.file : `agent ${agent?.name ?? ""}`, text, place: word.place };
    const entry = parseEntry(text, "allowlist-file");
    if (!entry.ok) {
      complaints.push({ ...entry.complaint, place: word.place });
      continue;
    }
    const { target, ports, protocol } = entry.value;
    if (target.kind !== "pattern" || target.pattern.kind !== "exact" || protocol !== "web") {
      complaints.push({ what: `critical service ${quote(text)} is not a plain name`, expected: "one host name that speaks TLS, such as api.example.com", fix: "name one host of the service", place: word.place });
      continue;
    }
    for (const port of ports) services.set(`${target.pattern.name}:${port}`, { name: target.pattern.name, port, origin });
    const missing = ports.filter((port) => !holds(list.entries, { ...entry.value, ports: [port] }));
    if (missing.length > 0) complaints.push(missingComplaint(renderEntry({ ...entry.value, ports: missing }), list.removed, entry.value, word.place));
  }
  return [...services.values()];
}

function holds(entries: readonly { entry: Entry }[], wanted: Entry): boolean {
  return entries.some(({ entry }) => coversEntry(entry, wanted));
}

function coversEntry(outer: Entry, inner: Entry): boolean {
  if (outer.target.kind !== "pattern" || inner.target.kind !== "pattern" || outer.protocol !== inner.protocol) return false;
  return coversPattern(outer.target.pattern, inner.target.pattern) && inner.ports.every((port) => outer.ports.includes(port));
}

function missingComplaint(text: string, removed: readonly Removal[], wanted: Entry, place: Place): Complaint {
  const removal = removed.find(({ entry }) => coversEntry(entry, wanted));
  const why = removal === undefined ? "is not in the effective list" : `was removed by the block ${quote(removal.by.text)}`;
  return {
    what: `critical service ${quote(text)} ${why}`,
    expected: "every critical service among the allowed ones",
    fix: removal === undefined ? `add ${quote(text)} to ALLOWED_SERVICES, or remove it from CRITICAL_SERVICES` : "lift the block, or remove the name from CRITICAL_SERVICES",
    place,
  };
}
