import { type Key, render, useInput } from "ink";
import { type ReactNode, useEffect, useReducer } from "react";
import type { TemplateChoices } from "../../policy/config-template.ts";
import { readSetupKey } from "./setup-keys.ts";
import { applySetup, beginSetup, readSetup, type SetupFacts, type SetupState } from "./setup-state.ts";
import { SetupView } from "./setup-view.tsx";
import { wantsColor } from "./theme.ts";

type Props = { facts: SetupFacts; useColor: boolean; onEnd: (choices: TemplateChoices | undefined) => void };

/** Asks for everything, and tells once what was chosen; undefined when the user left. */
export function Setup({ facts, useColor, onEnd }: Props): ReactNode {
  // Several keys may arrive at once: each is read by the state that the one before it made.
  const [state, press] = useReducer(applyPress, facts, beginSetup);
  useInput((input, key) => press({ input, key }));
  const { end } = state;
  useEffect(() => {
    if (end !== undefined) onEnd(end === "saved" ? readSetup(state) : undefined);
  }, [end, state, onEnd]);
  return <SetupView state={state} useColor={useColor} />;
}

type Press = { input: string; key: Key };

/** What arrives at once is several keys typed quickly, or a paste into the line for hosts. */
function applyPress(state: SetupState, { input, key }: Press): SetupState {
  if (input.length === 0 || state.step === "hosts") return applyKey(state, { input, key });
  const [first = ""] = input;
  // Inside of a longer input the key for Enter is a character like any other.
  const confirms = first === "\r" || first === "\n";
  const next = applyKey(state, { input: confirms ? "" : first, key: confirms ? { ...key, return: true } : key });
  return input.length === first.length ? next : applyPress(next, { input: input.slice(first.length), key });
}

function applyKey(state: SetupState, { input, key }: Press): SetupState {
  const action = state.end === undefined ? readSetupKey(state.step, input, key) : undefined;
  return action === undefined ? state : applySetup(state, action);
}

/** Draws the questions on the terminal and returns what was chosen; undefined when the user left. */
export async function openSetupScreen(facts: SetupFacts, env: Readonly<Record<string, string | undefined>>): Promise<TemplateChoices | undefined> {
  let chosen: TemplateChoices | undefined;
  const onEnd = (choices: TemplateChoices | undefined): void => {
    chosen = choices;
    instance.unmount();
  };
  const instance = render(<Setup facts={facts} useColor={wantsColor(env)} onEnd={onEnd} />, { exitOnCtrlC: false, patchConsole: false });
  await instance.waitUntilExit();
  return chosen;
}
