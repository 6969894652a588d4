import { createInterface } from "node:readline/promises";
import { escapeUnseen } from "../../policy/parsed.ts";

/**
 * Asks a question on the terminal, before anything is drawn there, and returns whether the answer was yes.
 * Only a whole `y` or `yes` is one; the end of the input, Ctrl-C and everything else is no.
 */
export async function askOnTerminal(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const over = new AbortController();
  lines.once("close", () => over.abort());
  try {
    const answer = await lines.question(`${escapeUnseen(question)} [y/N] `, { signal: over.signal });
    return /^y(?:es)?$/i.test(answer.trim());
  } catch {
    process.stdout.write("\n");
    return false;
  } finally {
    lines.close();
  }
}
