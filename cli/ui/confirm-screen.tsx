import type { ReadStream, WriteStream } from "node:tty";
import { setTimeout as sleep } from "node:timers/promises";
import { Box, render, Text, useInput } from "ink";
import { type ReactNode, useEffect, useState } from "react";
import { escapeUnseen } from "../../policy/parsed.ts";
import type { Reply } from "../../sandbox/confirmation.ts";
import { applyConfirm, beginConfirm } from "./confirm-state.ts";
import type { Choice } from "./confirm-text.ts";
import { wantsColor } from "./theme.ts";

type Props = { lines: readonly string[]; choices: readonly Choice[]; useColor: boolean; onReply: (reply: Reply) => void };

/** One question of the file guard. Everything is told in words; colour only repeats it. */
export function Confirm({ lines, choices, useColor, onReply }: Props): ReactNode {
  // Several keys may arrive at once: each is read by the state that the one before it made.
  const [state, setState] = useState(beginConfirm);
  useInput((input, key) => setState((before) => applyConfirm(before, { input, key }, choices)));
  const { typed, reply } = state;
  useEffect(() => {
    if (reply !== undefined) onReply(reply);
  }, [reply, onReply]);
  return (
    <Box flexDirection="column">
      <Text bold>The file guard asks</Text>
      {lines.map((line, index) => (
        <Text key={`${index} ${line}`}>{`  ${escapeUnseen(line)}`}</Text>
      ))}
      {choices.map(({ word, says }) => (
        <Text key={word}>{`[${word.slice(0, 1)}]${word.slice(1)} and Enter: allow it ${says}`}</Text>
      ))}
      <Text {...(useColor ? { color: "yellow" } : {})}>Enter alone, or anything else: no</Text>
      <Text>{`❯ ${escapeUnseen(typed)}▏`}</Text>
    </Box>
  );
}

type Asking = Pick<Props, "lines" | "choices"> & { input: ReadStream; output: WriteStream; env: Readonly<Record<string, string | undefined>>; signal: AbortSignal };

/** Draws a question on a terminal and returns the reply; a terminal that goes away, and a signal, are a no. */
export async function askOnScreen({ lines, choices, input, output, env, signal }: Asking): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const refuse = (): void => resolve("deny");
  for (const event of ["end", "close", "error"]) input.once(event, refuse);
  // Before anything is drawn: a key that answers shall be read as a key.
  input.setRawMode(true);
  await dropTypedAhead(input);
  const instance = render(<Confirm lines={lines} choices={choices} useColor={wantsColor(env)} onReply={resolve} />, { stdin: input, stdout: output, exitOnCtrlC: false, patchConsole: false });
  signal.addEventListener("abort", refuse, { once: true });
  if (signal.aborted) refuse();
  const reply = await promise;
  signal.removeEventListener("abort", refuse);
  instance.unmount();
  await instance.waitUntilExit();
  return reply;
}

const TYPED_AHEAD_MS = 100;

/** What was typed before the question was seen is no answer to it. */
async function dropTypedAhead(input: ReadStream): Promise<void> {
  const drop = (): void => {
    while (input.read() !== null);
  };
  input.on("readable", drop);
  await sleep(TYPED_AHEAD_MS);
  input.off("readable", drop);
}
