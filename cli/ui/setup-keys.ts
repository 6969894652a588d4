import type { Key } from "ink";
import type { SetupAction, SetupStep } from "./setup-state.ts";

/** Works out what a key means at a step of the setup; undefined for one without a meaning there. */
export function readSetupKey(step: SetupStep, input: string, key: Pick<Key, "upArrow" | "downArrow" | "leftArrow" | "return" | "escape" | "ctrl" | "meta" | "backspace" | "delete" | "tab" | "shift">): SetupAction | undefined {
  if (key.escape || (key.ctrl && (input === "c" || input === "d"))) return { kind: "leave" };
  if (key.leftArrow || (key.tab && key.shift)) return { kind: "back" };
  if (key.upArrow) return { kind: "up" };
  if (key.downArrow) return { kind: "down" };
  if (key.return || key.tab) return { kind: "next" };
  if (key.backspace || key.delete) return { kind: "erase" };
  if (key.ctrl || key.meta || input === "") return undefined;
  if (step === "hosts") return { kind: "text", text: input };
  return input === " " ? { kind: "toggle" } : undefined;
}
