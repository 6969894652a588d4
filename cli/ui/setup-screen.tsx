import { render, useInput } from "ink";
import { type ReactNode, useState } from "react";
import type { TemplateChoices } from "../../policy/config-template.ts";
import { readSetupKey } from "./setup-keys.ts";
import { applySetup, beginSetup, readSetup, type SetupFacts, type SetupState } from "./setup-state.ts";
import { SetupView } from "./setup-view.tsx";
import { wantsColor } from "./theme.ts";

type Props = { facts: SetupFacts; useColor: boolean; onEnd: (choices: TemplateChoices | undefined) => void };

/** Asks for everything, and tells once what was chosen; undefined when the user left. */
export function Setup({ facts, useColor, onEnd }: Props): ReactNode {
  const [state, setState] = useState<SetupState>(() => beginSetup(facts));
  useInput((input, key) => {
    const action = state.end === undefined ? readSetupKey(state.step, input, key) : undefined;
    if (action === undefined) return;
    const next = applySetup(state, action);
    setState(next);
    if (next.end !== undefined) onEnd(next.end === "saved" ? readSetup(next) : undefined);
  });
  return <SetupView state={state} useColor={useColor} />;
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
