import { z } from "zod";
import { findAgentProfile } from "../../policy/agent-profile.ts";
import { decide } from "../../policy/decide.ts";
import { emptyDocument } from "../../policy/policy-document.ts";
import { type DefaultTest, listDefaults, renderSuggestedToml, type Suggestion, suggestEntries } from "../../policy/suggestion.ts";
import type { Edge } from "../edge.ts";
import { describeGaps, readDecisions } from "../log/decision-files.ts";
import { dropOwnProbes } from "../log/own-probes.ts";
import { readBoxPolicy } from "../session/allowlist.ts";
import { describeAgent } from "./project-policy.ts";
import { chooseSession, describeChoice, NO_SESSION } from "./session-choice.ts";

/** The answer of `agentbox policy suggest --json`. */
export const suggestionsSchema = z.strictObject({
  version: z.literal(1),
  session: z.string().nullable(),
  /** Used as well, and open in every box with a firewall. */
  defaults: z.array(z.string()),
  entries: z.array(z.strictObject({ text: z.string(), ports: z.array(z.int()), hosts: z.array(z.string()), count: z.int() })),
});

/** Prints the smallest list that a session really used. */
export async function suggestPolicy({ host, print, say }: Edge, { json, session }: { json: boolean; session: string | undefined }): Promise<number> {
  const chosen = await chooseSession(host, session);
  const { records, ...gaps } = chosen === undefined ? { records: [], unread: 0, missing: 0, holes: 0 } : readDecisions(chosen.directory);
  const own = dropOwnProbes(records);
  const isDefault = chosen === undefined ? () => false : await readDefaults(host.root, chosen.record.agent);
  const suggestions = suggestEntries(own, isDefault);
  const defaults = listDefaults(own, isDefault);
  for (const text of describeGaps(gaps)) say(text);
  if (json) {
    await print(`${JSON.stringify(describeSuggestions(chosen?.record.id, suggestions, defaults), undefined, 2)}\n`);
    return 0;
  }
  say(chosen === undefined ? NO_SESSION : describeChoice(chosen));
  if (chosen === undefined) return 0;
  if (defaults.length > 0) say(`${defaults.length} ${defaults.length === 1 ? "host is" : "hosts are"} allowed by default and left out: ${defaults.join(", ")}`);
  if (suggestions.length === 0 && defaults.length > 0) say("it used nothing that needs an entry");
  else if (suggestions.length === 0) say("it used no name; a session in report mode (network.report = true) shows what one needs");
  else await print(renderSuggestedToml(suggestions));
  return 0;
}

/** What a box of this agent reaches without any configuration. */
async function readDefaults(root: string, agent: string): Promise<DefaultTest> {
  const { policy } = await readBoxPolicy(root, emptyDocument(describeAgent(findAgentProfile(agent))));
  return (host, port) => decide(policy, { host, port }).action === "allow";
}

function describeSuggestions(session: string | undefined, suggestions: readonly Suggestion[], defaults: readonly string[]): z.infer<typeof suggestionsSchema> {
  const entries = suggestions.map(({ text, ports, hosts, count }) => ({ text, ports: [...ports], hosts: [...hosts], count }));
  return { version: 1, session: session ?? null, defaults: [...defaults], entries };
}
