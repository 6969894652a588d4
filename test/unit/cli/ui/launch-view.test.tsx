import { render } from "ink-testing-library";
import { expect, test } from "vitest";
import { applyEvent, emptyLaunch } from "../../../../cli/ui/launch-state.ts";
import { LaunchView } from "../../../../cli/ui/launch-view.tsx";
import { makeTheme, wantsColor } from "../../../../cli/ui/theme.ts";
import type { BootEvent } from "../../../../policy/boot-event.ts";

const resolving: readonly BootEvent[] = [
  { event: "start", step: "engine" },
  { event: "done", step: "engine", ms: 12, detail: "docker 28.0.1" },
  { event: "start", step: "resolving" },
  { event: "progress", step: "resolving", done: 7, total: 28 },
];

function draw(events: readonly BootEvent[]): string {
  const state = events.reduce(applyEvent, emptyLaunch);
  return render(<LaunchView state={state} theme={makeTheme(false)} />).lastFrame() ?? "";
}

test("shows each step with its outcome, and how far the running one is", () => {
  expect(draw(resolving)).toBe(["✓ engine     docker 28.0.1 (12 ms)", "… resolving  7 of 28"].join("\n"));
});

test("shows a warning below the steps while they run", () => {
  expect(draw([...resolving, { event: "warning", step: "resolving", text: "pypi.org does not resolve" }])).toMatch(/7 of 28\n! resolving: pypi\.org does not resolve$/);
});

test("a failure marks its step, ends the list and tells the remedy", () => {
  const frame = draw([...resolving, { event: "failed", step: "resolving", text: "github.com does not resolve; fix: see to the resolver", exitCode: 69 }]);
  expect(frame).toBe(["✓ engine     docker 28.0.1 (12 ms)", "✗ resolving", "github.com does not resolve; fix: see to the resolver"].join("\n"));
});

test("once the box is ready only warnings and the ready line stay", () => {
  const frame = draw([...resolving, { event: "warning", step: "", text: "FIREWALL OFF" }, { event: "ready", text: "ready", ms: 90 }]);
  expect(frame).toBe(["! FIREWALL OFF", "✓ ready (90 ms)"].join("\n"));
});

test("a step that a box calls by a name nobody knows is shown all the same", () => {
  expect(draw([{ event: "start", step: "new-step" }])).toBe("… new-step");
});

test.each([
  { name: "an empty NO_COLOR leaves colour on", env: { NO_COLOR: "" }, color: true },
  { name: "any other NO_COLOR switches it off", env: { NO_COLOR: "0" }, color: false },
  { name: "without the variable there is colour", env: {}, color: true },
])("$name", ({ env, color }) => {
  expect(wantsColor(env)).toBe(color);
});

test("what a terminal would obey is shown as text, wherever it stands", () => {
  const evil = "\u{9b}2J\u{202e}";
  const frame = draw([{ event: "done", step: `s${evil}`, ms: 1, detail: evil }, { event: "warning", step: "", text: evil }, { event: "failed", step: "x", text: evil, exitCode: 1 }]);
  expect(frame.match(/\\u009b2J\\u202e/g)).toHaveLength(4);
  expect(frame).not.toMatch(/[\u{80}-\u{9f}\u{202e}]/u);
});
