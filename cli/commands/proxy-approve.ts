import { createInterface, type Interface } from "node:readline";
import { KnownError, renderComplaint } from "../../policy/errors.ts";
import { escapeUnseen } from "../../policy/parsed.ts";
import type { WrittenLine } from "../../proxy/log/decision-log.ts";
import type { Standalone } from "../../proxy/standalone/standalone.ts";

/** Asks one question on the terminal; undefined when there will be no more answers. */
export type AskLine = (question: string) => Promise<string | undefined>;

export type Approving = {
  standalone: Pick<Standalone, "approves" | "listen" | "allow" | "reload">;
  /** Writes hosts into the configuration. */
  write: (hosts: readonly string[]) => Promise<void>;
  ask: AskLine;
  say: (line: string) => void;
};

const ONCE_MS = 60_000;
/** Hosts that wait to be asked about; a program that asks for ever new names does not fill the memory. */
const MAX_WAITING = 100;
const CHOICES = { o: "once", s: "session", a: "always", d: "deny" } as const;

/**
 * Asks on the terminal about each host that is refused for the first time, one after the other; the proxy
 * goes on meanwhile, and the host stays refused until there is an answer. Returns how to stop.
 */
export function approveHosts({ standalone, write, ask, say }: Approving): () => void {
  const known = new Set<string>();
  const waiting: { word: string; question: string }[] = [];
  const over = new AbortController();
  let asking = false;

  const take = (line: WrittenLine): void => {
    const found = over.signal.aborted || !standalone.approves ? undefined : describeRefusal(line);
    if (found === undefined || known.has(found.word) || waiting.length >= MAX_WAITING) return;
    known.add(found.word);
    waiting.push(found);
    if (!asking) void askAll();
  };

  const askAll = async (): Promise<void> => {
    asking = true;
    for (let next = waiting.shift(); next !== undefined && !over.signal.aborted; next = waiting.shift()) await settle(next);
    asking = false;
  };

  const settle = async ({ word, question }: { word: string; question: string }): Promise<void> => {
    const answer = await askChoice(question, ask);
    if (answer === undefined) {
      over.abort();
      say("nobody answers any more: hosts that are refused stay refused");
      return;
    }
    try {
      if (answer === "deny") return;
      if (answer !== "always") return standalone.allow(answer === "once" ? { text: word, until: Date.now() + ONCE_MS } : { text: word });
      await write([word]);
      await standalone.reload(`${word} was allowed at the terminal`);
    } catch (error) {
      if (!(error instanceof KnownError)) throw error;
      for (const complaint of error.complaints) say(`${word} stays refused: ${renderComplaint(complaint)}`);
    } finally {
      // When its minute is over, or where the file could not be written, the next refusal is a new question.
      if (answer === "once" || answer === "always") known.delete(word);
    }
  };

  return standalone.listen(take);
}

/** What is asked about a refusal; undefined for one that no word of a list would change. */
function describeRefusal({ entry }: WrittenLine): { word: string; question: string } | undefined {
  if (entry.kind !== "decision" || entry.action !== "deny" || entry.reason !== "not_allowed" || entry.hint === null || entry.port === null) return undefined;
  const { host, port, protocol } = entry;
  const place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const word = port === 443 ? host : place;
  return { word, question: `refused: ${place} (${protocol}). Allow it [o]nce (one minute), for this [s]ession, [a]lways, or [d]eny? ` };
}

async function askChoice(question: string, ask: AskLine): Promise<"once" | "session" | "always" | "deny" | undefined> {
  for (;;) {
    const answer = (await ask(question))?.trim().toLowerCase();
    if (answer === undefined) return undefined;
    const choice = Object.entries(CHOICES).find(([key, word]) => answer === key || answer === word)?.[1];
    if (choice !== undefined) return choice;
  }
}

/** Asks on the terminal of this process, which is left alone until the first question. Ctrl-C there is told to `onInterrupt`. */
export function askOnThisTerminal(onInterrupt: () => void): { ask: AskLine; close: () => void } {
  let lines: Interface | undefined;
  let answer: ((text: string | undefined) => void) | undefined;
  const over = new AbortController();
  const giveUp = (): void => {
    over.abort();
    answer?.(undefined);
  };
  const open = (): Interface => {
    const opened = createInterface({ input: process.stdin, output: process.stderr });
    opened.on("line", (text) => answer?.(text));
    opened.on("SIGINT", onInterrupt);
    // A terminal that is gone answers with an error, also when it is let go.
    opened.on("error", giveUp).once("close", giveUp);
    return opened;
  };
  const ask = async (question: string): Promise<string | undefined> => {
    lines ??= open();
    if (over.signal.aborted) return undefined;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    answer = resolve;
    lines.setPrompt(escapeUnseen(`agentbox: ${question}`));
    lines.prompt();
    const text = await promise;
    answer = undefined;
    return text;
  };
  return { ask, close: () => lines?.close() };
}
