import { z } from "zod";
import { renderSuggestedToml, type Suggestion, suggestEntries } from "../../policy/suggestion.ts";
import type { Edge } from "../edge.ts";
import { readDecisions } from "../log/decision-files.ts";
import { dropOwnProbes } from "../log/own-probes.ts";
import { chooseSession, describeChoice, NO_SESSION } from "./session-choice.ts";

/** The answer of `agentbox policy suggest --json`. */
export const suggestionsSchema = z.strictObject({
  version: z.literal(1),
  session: z.string().nullable(),
  entries: z.array(z.strictObject({ text: z.string(), ports: z.array(z.int()), hosts: z.array(z.string()), count: z.int() })),
});

/** Prints the smallest list that a session really used. */
export async function suggestPolicy({ host, print, say }: Edge, { json, session }: { json: boolean; session: string | undefined }): Promise<number> {
  const chosen = await chooseSession(host, session);
  const suggestions = chosen === undefined ? [] : suggestEntries(dropOwnProbes(readDecisions(chosen.directory).records));
  if (json) {
    await print(`${JSON.stringify(describeSuggestions(chosen?.record.id, suggestions), undefined, 2)}\n`);
    return 0;
  }
  say(chosen === undefined ? NO_SESSION : describeChoice(chosen));
  if (chosen === undefined) return 0;
  if (suggestions.length === 0) say("it used no name; a session in report mode (network.report = true) shows what one needs");
  else await print(renderSuggestedToml(suggestions));
  return 0;
}

function describeSuggestions(session: string | undefined, suggestions: readonly Suggestion[]): z.infer<typeof suggestionsSchema> {
  const entries = suggestions.map(({ text, ports, hosts, count }) => ({ text, ports: [...ports], hosts: [...hosts], count }));
  return { version: 1, session: session ?? null, entries };
}
