import { z } from "zod";
import type { CommandLine } from "./preflight-needs.ts";
import type { Need } from "./preflight-need.ts";
import { readUrl } from "./preflight-place.ts";

/** What Claude Code writes to a hook before it uses a tool, as far as it matters here; it adds keys from version to version. */
const hookInputSchema = z.looseObject({
  hook_event_name: z.string(),
  tool_name: z.string(),
  tool_input: z.looseObject({ command: z.unknown(), url: z.unknown() }).partial(),
  cwd: z.string().optional(),
});

/** A refusal as Claude Code reads it from the hook's stdout. Its other decisions would pass over what the user is asked, and are never written. */
export const hookAnswerSchema = z.strictObject({
  hookSpecificOutput: z.strictObject({ hookEventName: z.literal("PreToolUse"), permissionDecision: z.literal("deny"), permissionDecisionReason: z.string() }),
});

/** What a tool is about to do, where that can be judged. */
export type ToolUse = { asked: CommandLine | { needs: readonly Need[] } | undefined; cwd: string | undefined };

/** Parses what a hook reads. A sentence says why there is nothing to judge by; a tool that needs no network is no mistake. */
export function parseHookInput(text: string): ToolUse | { flaw: string } {
  const input = hookInputSchema.safeParse(parseJson(text)).data;
  if (input === undefined) return { flaw: "this is no input of a hook before a tool" };
  if (input.hook_event_name !== "PreToolUse") return { flaw: "this hook answers PreToolUse only" };
  const { command, url } = input.tool_input;
  if (input.tool_name === "Bash") return typeof command === "string" ? { asked: { script: command }, cwd: input.cwd } : { flaw: "Bash without a command" };
  if (input.tool_name === "WebFetch") return typeof url === "string" ? { asked: { needs: needUrl(url) }, cwd: input.cwd } : { flaw: "WebFetch without a url" };
  return { asked: undefined, cwd: input.cwd };
}

/** Renders the refusal, one sentence a need. */
export function renderHookAnswer(sentences: readonly string[]): string {
  const answer: z.infer<typeof hookAnswerSchema> = { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: sentences.join("\n") } };
  return `${JSON.stringify(answer)}\n`;
}

function needUrl(url: string): Need[] {
  const place = readUrl(url);
  return place === undefined ? [] : [{ kind: "host", program: "WebFetch", form: "url", ...place }];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
