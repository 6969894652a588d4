import type { StepState } from "./launch-state.ts";

/** Signs and colours of the launch screen. A colour that is undefined is the terminal's own. */
export type Theme = {
  sign: Readonly<Record<StepState["status"], string>>;
  color: Readonly<Record<StepState["status"] | "warning" | "ready", string | undefined>>;
};

const sign = { running: "…", done: "✓", failed: "✗" } as const;

/** Makes the theme. Colour only says again what signs and words say, so nothing is lost without it. */
export function makeTheme(useColor: boolean): Theme {
  if (!useColor) return { sign, color: { running: undefined, done: undefined, failed: undefined, warning: undefined, ready: undefined } };
  return { sign, color: { running: "cyan", done: "green", failed: "red", warning: "yellow", ready: "green" } };
}

/** Follows no-color.org: any value that is not empty switches colour off. */
export function wantsColor(env: Readonly<Record<string, string | undefined>>): boolean {
  return (env["NO_COLOR"] ?? "") === "";
}
