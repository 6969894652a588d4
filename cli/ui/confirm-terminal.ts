import { closeSync, constants, openSync } from "node:fs";
import { ReadStream, WriteStream } from "node:tty";
import type { FrontEnd, Reply } from "../../sandbox/confirmation.ts";
import { type Choice, describePrompt, listChoices } from "./confirm-text.ts";

/** Asks on one terminal, one question after the other. */
export type ConfirmTerminal = FrontEnd & {
  /** Asks with other choices than the question's own. */
  choose: (lines: readonly string[], choices: readonly Choice[], signal: AbortSignal) => Promise<Reply>;
  close: () => void;
};

/**
 * Opens the terminal that this process belongs to, by its own name: stdin may be a pipe that somebody fills with
 * yeses. Undefined where there is none.
 */
export function openConfirmTerminal(env: Readonly<Record<string, string | undefined>>): ConfirmTerminal | undefined {
  const streams = openStreams();
  if (streams === undefined) return undefined;
  let last: Promise<unknown> = Promise.resolve();
  const choose: ConfirmTerminal["choose"] = async (lines, choices, signal) => {
    const { askOnScreen } = await import("./confirm-screen.tsx");
    const own = last.then(async () => (signal.aborted ? "deny" : await askOnScreen({ lines, choices, ...streams, env, signal })));
    last = own.catch(() => undefined);
    return await own;
  };
  return {
    kind: "terminal",
    ask: async (question, signal) => await choose(describePrompt(question), listChoices(question.scopes), signal),
    choose,
    close: () => {
      streams.input.destroy();
      streams.output.destroy();
    },
  };
}

function openStreams(): { input: ReadStream; output: WriteStream } | undefined {
  let fd: number | undefined;
  try {
    fd = openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY);
    const input = new ReadStream(fd);
    fd = openSync("/dev/tty", constants.O_WRONLY | constants.O_NOCTTY);
    const output = new WriteStream(fd);
    // A terminal that is gone is told by the end of its input.
    output.on("error", () => undefined);
    return { input, output };
  } catch {
    if (fd !== undefined) closeSync(fd);
    return undefined;
  }
}
