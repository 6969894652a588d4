import { escapeUnseen } from "./parsed.ts";

const MAX_WIDTH = 100;

// What most terminals draw two cells wide: the scripts of East Asia, and pictures.
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/**
 * Renders the line of a text with carets under a span, two lines; undefined where the line may hold a
 * secret (variables, a proxy's password): complaints end in logs. The span is cut at the end of its line.
 */
export function renderExcerpt(text: string, { start, end }: { start: number; end: number }): string | undefined {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const lineEnd = text.indexOf("\n", start);
  const line = text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd).replace(/\r$/, "");
  if (mayHoldSecret(text.slice(0, lineStart), line)) return undefined;
  const from = Math.min(start - lineStart, line.length);
  const to = Math.min(Math.max(end - lineStart, from + 1), Math.max(line.length, from + 1));
  // Long lines are shown around the mistake.
  const cut = from > MAX_WIDTH - 20 ? from - 20 : 0;
  const shown = line.slice(cut, cut + MAX_WIDTH);
  const before = show(line.slice(cut, from));
  const marked = show(line.slice(from, Math.min(to, cut + MAX_WIDTH)));
  const number = String(text.slice(0, lineStart).split("\n").length);
  const gap = " ".repeat(number.length);
  const ellipsis = cut > 0 ? "…" : "";
  const rest = cut + MAX_WIDTH < line.length ? "…" : "";
  return `  ${number} | ${ellipsis}${show(shown)}${rest}\n  ${gap} | ${" ".repeat(ellipsis.length + measureWidth(before))}${"^".repeat(Math.max(1, measureWidth(marked)))}`;
}

function show(text: string): string {
  return escapeUnseen(text.replaceAll("\t", " "));
}

function measureWidth(text: string): number {
  return Array.from(text).reduce((sum, char) => sum + (WIDE.test(char) ? 2 : 1), 0);
}

// Judged by the words alone, since the text may not be TOML at all; too careful costs no more than an excerpt.
function mayHoldSecret(before: string, line: string): boolean {
  const headerLine = before.split("\n").findLast((earlier) => /^[ \t]*\[/.test(earlier)) ?? "";
  return /\b(?:env|proxy)\b/i.test(headerLine) || /\b(?:env|proxy)\b/i.test(line) || insideBraces(before);
}

/** Tells whether an `env = {` before is still open, as in a text whose inline table spans lines. */
function insideBraces(before: string): boolean {
  const open = before.lastIndexOf("{");
  return open > before.lastIndexOf("}") && /\benv\b[^\n]*$/.test(before.slice(0, open));
}
