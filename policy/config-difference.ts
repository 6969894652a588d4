import { escapeUnseen } from "./parsed.ts";

/** A file by the name that messages use, and its text. */
export type NamedText = { name: string; text: string };

/**
 * Tells by its name whether a file lies outside the project. A configuration that nobody agreed to may name any file of
 * the user, a list of passwords too: nothing of its lines is repeated.
 */
export function isForeignFile(name: string): boolean {
  return name.startsWith("/");
}

const CONTEXT = 3;
/** Cells of the comparison's table; beyond it all old lines are shown, then all new ones. */
const MAX_CELLS = 4_000_000;

type Line = { sign: " " | "-" | "+"; text: string };

/**
 * Renders how texts differ, line by line with `-` and `+` and three lines around each change, for a
 * terminal: nothing in them acts on it. Files of the same name are compared; equal ones are left out, and of
 * those outside the project only the name is shown.
 */
export function renderDifference(before: readonly NamedText[], after: readonly NamedText[]): string {
  const names = new Set([...after, ...before].map(({ name }) => name));
  const parts = [...names].flatMap((name) => {
    const old = before.find((file) => file.name === name);
    const current = after.find((file) => file.name === name);
    if (old?.text === current?.text) return [];
    const title = escapeUnseen(name);
    const lines = isForeignFile(name) ? ["(its lines are not shown, since it lies outside the project)"] : keepContext(compareLines(splitLines(old?.text), splitLines(current?.text)));
    return [`--- ${old === undefined ? "(none)" : title}`, `+++ ${current === undefined ? "(none)" : title}`, ...lines];
  });
  return parts.length === 0 ? "" : `${parts.join("\n")}\n`;
}

function splitLines(text: string | undefined): string[] {
  if (text === undefined || text === "") return [];
  return text.replace(/\r?\n$/, "").split(/\r?\n/);
}

function compareLines(before: readonly string[], after: readonly string[]): Line[] {
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const sign = (lines: readonly string[], mark: Line["sign"]): Line[] => lines.map((text) => ({ sign: mark, text }));
  return [
    ...sign(before.slice(0, start), " "),
    ...compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end), sign),
    ...sign(before.slice(before.length - end), " "),
  ];
}

/** Finds the longest common subsequence by the usual table, filled from the end. */
function compareMiddle(before: readonly string[], after: readonly string[], sign: (lines: readonly string[], mark: Line["sign"]) => Line[]): Line[] {
  if (before.length * after.length > MAX_CELLS) return [...sign(before, "-"), ...sign(after, "+")];
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] = before[row] === after[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: Line[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length && column < after.length) {
    const same = before[row] === after[column];
    const removed = !same && at(row + 1, column) >= at(row, column + 1);
    lines.push(same || removed ? { sign: same ? " " : "-", text: before[row] ?? "" } : { sign: "+", text: after[column] ?? "" });
    if (same || removed) row += 1;
    if (!removed) column += 1;
  }
  return [...lines, ...sign(before.slice(row), "-"), ...sign(after.slice(column), "+")];
}

function keepContext(lines: readonly Line[]): string[] {
  const near = new Set<number>();
  lines.forEach(({ sign }, index) => {
    if (sign === " ") return;
    for (let offset = -CONTEXT; offset <= CONTEXT; offset += 1) near.add(index + offset);
  });
  return lines.flatMap(({ sign, text }, index) => {
    if (near.has(index)) return [`${sign}${escapeUnseen(text)}`];
    return near.has(index - 1) ? ["…"] : [];
  });
}
