import type { BootEvent } from "../../policy/boot-event.ts";
import { escapeUnseen } from "../../policy/parsed.ts";
import { renderPlainLine } from "./plain.ts";
import { wantsColor } from "./theme.ts";

/** Where a start shows its steps. After `close` the terminal is as it was found. */
export type Screen = {
  report: (event: BootEvent) => void;
  close: () => Promise<void>;
};

export type ScreenStyle = "terminal" | "plain" | "json";

type Environment = Readonly<Record<string, string | undefined>>;

/** Chooses how a start shows its steps: drawn, as lines, or as JSON lines for programs. */
export function chooseStyle(env: Environment, terminal: boolean): ScreenStyle {
  if (env["AGENTBOX_LOG"] === "json") return "json";
  return terminal && env["TERM"] !== "dumb" ? "terminal" : "plain";
}

/** Opens a screen. The drawn one is loaded only now, since most of the program's size is in it. */
export async function openScreen(style: ScreenStyle, env: Environment, writeLine: (line: string) => void): Promise<Screen> {
  if (style === "terminal") {
    const { openLaunchScreen } = await import("./launch-screen.tsx");
    return openLaunchScreen(process.stdout, wantsColor(env));
  }
  const render = style === "json" ? (event: BootEvent) => JSON.stringify(event) : renderPlainLine;
  return {
    report: (event) => {
      const line = render(event);
      // Names of files and answers of other programs are part of the text.
      if (line !== undefined) writeLine(escapeUnseen(line));
    },
    close: async () => {},
  };
}
