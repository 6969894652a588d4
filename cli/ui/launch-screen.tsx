import { render } from "ink";
import { applyEvent, emptyLaunch } from "./launch-state.ts";
import { LaunchView } from "./launch-view.tsx";
import type { Screen } from "./screen.ts";
import { makeTheme } from "./theme.ts";

/** Draws the launch screen on a terminal. It reads no keys: Ctrl-C stays the terminal's own and arrives as a signal. */
export function openLaunchScreen(stdout: NodeJS.WriteStream, useColor: boolean): Omit<Screen, "tell"> {
  const theme = makeTheme(useColor);
  let state = emptyLaunch;
  let open = true;
  const instance = render(<LaunchView state={state} theme={theme} />, { stdout, interactive: true, exitOnCtrlC: false, patchConsole: false });
  return {
    report: (event) => {
      state = applyEvent(state, event);
      if (open) instance.rerender(<LaunchView state={state} theme={theme} />);
    },
    close: async () => {
      if (!open) return;
      open = false;
      await instance.waitUntilRenderFlush();
      instance.unmount();
      await instance.waitUntilExit();
    },
  };
}
