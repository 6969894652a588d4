import { escapeUnseen } from "./parsed.ts";
import type { PolicyView } from "./policy-view.ts";

/** The policy for a terminal, whole: every entry with its origin, every removal with the block that did it. */
export function renderPolicyShow(view: PolicyView): readonly string[] {
  const lines = [
    `network ${view.mode}, enforcement ${view.enforcement}, topology ${view.topology}, agent ${view.agent}`,
    ...describeSettings(view),
    ...section("warning", view.warnings.map((text) => [text])),
    ...section("note", view.notes.map((text) => [text])),
    ...(view.mode === "allowlist" ? describeLists(view) : []),
  ];
  return lines.map((line) => escapeUnseen(line));
}

function describeSettings({ ssh, methods, intercept, base, report, presets, allowPrivate, critical }: PolicyView): readonly string[] {
  return [
    ...(ssh === "listed" ? [] : [`ssh: ${ssh}`]),
    ...(methods === "full" ? [] : ["limited mode: GET, HEAD and OPTIONS only"]),
    ...(intercept ? ["TLS is opened and judged, with a certificate of the session's own authority"] : []),
    ...(base === "deny-list" ? ["every public name that nothing below denies is reachable on ports 80 and 443"] : []),
    ...(report ? ["report mode: what is not allowed is let through and written down"] : []),
    ...(presets.length === 0 ? [] : [`presets: ${presets.join(", ")}`]),
    ...(allowPrivate.length === 0 ? [] : [`private addresses that names may lead to: ${allowPrivate.join(", ")}`]),
    ...(critical.length === 0 ? [] : [`critical: ${critical.map(({ name, port }) => (port === 443 ? name : `${name}:${port}`)).join(", ")}`]),
  ];
}

function describeLists(view: PolicyView): readonly string[] {
  return [
    ...section("blocked", view.blocks.map(({ text, origin }) => [text, origin])),
    ...section("rules, first match wins", view.rules.map(({ text, origins }) => [text, origins.join(", ")])),
    ...section("allowed", [
      ...view.entries.map(({ text, origins, deniedBy }) => [text, `${origins.join(", ")}${deniedBy === null ? "" : `; closed by the rule ${deniedBy}`}`]),
      ...view.private.map(({ name, ports, origins }) => [`${name}:${ports.join(",")}`, `${origins.join(", ")}; may be private`]),
      ...(view.github === null ? [] : [[`${view.github.blocks} address blocks of GitHub:${view.github.ports.join(",")}`, view.github.origin]]),
    ]),
    ...section("removed", view.removed.map(({ text, by, byOrigin, origins }) => [text, `${origins.join(", ")}; by the block ${by} (${byOrigin})`])),
  ];
}

/** A heading and its rows in columns; nothing where there are no rows. */
function section(title: string, rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const width = Math.min(48, Math.max(...rows.map(([first = ""]) => first.length)));
  return ["", `${title}:`, ...rows.map(([first = "", second]) => (second === undefined ? `  ${first}` : `  ${first.padEnd(width)}  ${second}`))];
}
