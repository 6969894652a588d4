import { expect, test } from "vitest";
import { renderPlainLine } from "../../../../cli/ui/plain.ts";
import { chooseStyle, openScreen } from "../../../../cli/ui/screen.ts";
import type { BootEvent } from "../../../../policy/boot-event.ts";

const rows: { name: string; event: BootEvent; line: string | undefined }[] = [
  { name: "a step that begins is not worth a line", event: { event: "start", step: "engine" }, line: undefined },
  { name: "a step that ended is one line", event: { event: "done", step: "engine", ms: 9, detail: "docker 28" }, line: "agentbox: engine: docker 28 (9 ms)" },
  { name: "a build says how far it is", event: { event: "progress", step: "image", done: 2, total: 9 }, line: "agentbox: image: step 2 of 9" },
  { name: "a warning without a step has none", event: { event: "warning", step: "", text: "FIREWALL OFF" }, line: "agentbox: warning: FIREWALL OFF" },
  { name: "a failure names its step", event: { event: "failed", step: "rules", text: "no", exitCode: 70 }, line: "agentbox: error: rules: no" },
];

test.each(rows)("$name", ({ event, line }) => {
  expect(renderPlainLine(event)).toBe(line);
});

test.each([
  { name: "draws on a terminal", env: {}, terminal: true, style: "terminal" },
  { name: "writes lines without one", env: {}, terminal: false, style: "plain" },
  { name: "writes lines on a terminal that cannot move its cursor", env: { TERM: "dumb" }, terminal: true, style: "plain" },
  { name: "writes JSON when a program asked for it", env: { AGENTBOX_LOG: "json" }, terminal: true, style: "json" },
])("$name", ({ env, terminal, style }) => {
  expect(chooseStyle(env, terminal)).toBe(style);
});

test.each(["plain", "json"] as const)("the %s screen shows what a terminal would obey as text", async (style) => {
  const lines: string[] = [];
  const screen = await openScreen(style, {}, (line) => lines.push(line));
  screen.report({ event: "warning", step: "", text: "/p/\u{9b}2J\u{202e}gnp" });
  expect(lines.join()).toContain(String.raw`/p/\u009b2J\u202egnp`);
});
