import type { BootEvent } from "../../policy/boot-event.ts";
import { escapeUnseen } from "../../policy/parsed.ts";
import { renderPlainLine } from "./plain.ts";
import { wantsColor } from "./theme.ts";

/** Where a start shows its steps. After `close` the terminal is as it was found. */
export type Screen = {
  report: (event: BootEvent) => void;
  /** Writes a line of its own, for people; once the screen is closed. */
  tell: (line: string) => void;
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
    return followWithLines(openLaunchScreen(process.stdout, wantsColor(env)), writeLine);
  }
  const render = style === "json" ? (event: BootEvent) => JSON.stringify(event) : renderPlainLine;
  return {
    report: (event) => writeEvent(render(event), writeLine),
    tell: (line) => writeEvent(style === "json" ? JSON.stringify({ event: "warning", step: "", text: line }) : line, writeLine),
    close: async () => {},
  };
}

/** What is said once the screen is closed, when the box has ended, comes as lines. */
function followWithLines(drawn: Omit<Screen, "tell">, writeLine: (line: string) => void): Screen {
  let open = true;
  return {
    report: (event) => (open ? drawn.report(event) : writeEvent(renderPlainLine(event), writeLine)),
    tell: (line) => writeEvent(line, writeLine),
    close: async () => {
      open = false;
      await drawn.close();
    },
  };
}

/** Names of files and answers of other programs are part of the text. */
function writeEvent(line: string | undefined, writeLine: (line: string) => void): void {
  if (line !== undefined) writeLine(escapeUnseen(line));
}
