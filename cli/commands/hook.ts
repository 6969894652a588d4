import { isAbsolute } from "node:path";
import { parseHookInput, renderHookAnswer } from "../../policy/claude-hook.ts";
import { renderRefusedNeed } from "../../policy/preflight.ts";
import type { Edge } from "../edge.ts";
import { judgeCommand } from "./command-judgement.ts";

/** More refusals than anybody reads. */
const MAX_SENTENCES = 5;

/**
 * Answers a PreToolUse hook of Claude Code: a refusal where something that the tool obviously needs is refused, and
 * nothing otherwise, so that the user is asked as always. What cannot be judged is said on stderr, and nothing is decided.
 */
export async function answerClaudeHook({ host, print, say }: Edge, input: string): Promise<void> {
  const use = parseHookInput(input);
  if ("flaw" in use) {
    say(`hook: ${use.flaw}; nothing is decided`);
    return;
  }
  if (use.asked === undefined) return;
  // Claude's own directory moves with every `cd`; the project is where it was started.
  const cwd = [host.env["CLAUDE_PROJECT_DIR"], use.cwd].find((path) => path !== undefined && isAbsolute(path)) ?? host.cwd;
  const { needs, refused } = await judgeCommand({ ...host, cwd }, { asked: use.asked, mode: undefined, agent: undefined });
  if (!refused) return;
  const sentences = needs.filter(({ action }) => action === "deny").map(renderRefusedNeed);
  const rest = sentences.length - MAX_SENTENCES;
  await print(renderHookAnswer([...sentences.slice(0, MAX_SENTENCES), ...(rest > 0 ? [`and ${rest} more`] : [])]));
}
