import type { Key } from "ink";
import type { Reply } from "../../sandbox/confirmation.ts";
import type { Choice } from "./confirm-text.ts";

/** What is typed, and the reply once there is one. */
export type ConfirmState = { typed: string; reply: Reply | undefined };

export const beginConfirm: ConfirmState = { typed: "", reply: undefined };

const MAX_TYPED = 20;

type Press = { input: string; key: Pick<Key, "return" | "escape" | "ctrl" | "meta" | "backspace" | "delete"> };

/** Returns the state after a key. Only a whole word and Enter are a yes; Enter alone, Escape, Ctrl-C and Ctrl-D are a no. */
export function applyConfirm(state: ConfirmState, { input, key }: Press, choices: readonly Choice[]): ConfirmState {
  if (state.reply !== undefined) return state;
  if (key.escape || (key.ctrl && (input === "c" || input === "d"))) return { ...state, reply: "deny" };
  if (key.return) return settle(state, choices);
  if (key.backspace || key.delete) return { ...state, typed: state.typed.slice(0, -1) };
  if (key.ctrl || key.meta) return state;
  // Keys that are typed quickly, or a paste, arrive at once.
  let next = state;
  for (const char of input) {
    if (next.reply !== undefined) return next;
    if (char === "\r" || char === "\n") next = settle(next, choices);
    // A terminal that was not raw yet turns Ctrl-D into NUL.
    else if (char === "\u0003" || char === "\u0004" || char === "\0") next = { ...next, reply: "deny" };
    // What does not fit makes no word either.
    else next = { ...next, typed: `${next.typed}${char}`.slice(0, MAX_TYPED) };
  }
  return next;
}

function settle(state: ConfirmState, choices: readonly Choice[]): ConfirmState {
  const typed = state.typed.trim().toLowerCase();
  const chosen = choices.find(({ word }) => typed === word || typed === word.slice(0, 1));
  return { ...state, reply: chosen?.scope ?? "deny" };
}
