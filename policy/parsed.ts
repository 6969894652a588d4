import type { Complaint } from "./errors.ts";

/**
 * The answer of a parser of one word: the value, or the complaint to show. Parsers of whole files
 * collect these, so that a user sees every mistake at once; throwing would end at the first.
 */
export type Parsed<T> = { ok: true; value: T } | Refusal;
export type Refusal = { ok: false; complaint: Complaint };

/** Wraps a value as a success. */
export function parsed<T>(value: T): { ok: true; value: T } {
  return { ok: true, value };
}

/** Makes a refusal: what is wrong, what was expected, and the corrected form where one can be guessed. */
export function refused(what: string, expected?: string, fix?: string): Refusal {
  return { ok: false, complaint: { what, expected, fix } };
}

/** Quotes user text for a message: control characters escaped, so that no message can forge a line; at most 80 characters. */
export function quote(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return quotePath(short);
}

/** Quotes a path for a message, whole, so that it can be found: as `quote`, without its limit. */
export function quotePath(path: string): string {
  return escapeUnseen(JSON.stringify(path));
}

/**
 * Escapes what a terminal would obey or hide, as JSON does: control characters of both sets, and marks
 * that turn the direction of a text. Line ends and tabs stay; a JSON text means the same afterwards.
 */
export function escapeUnseen(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (char) => (char === "\n" || char === "\t" ? char : escapeUnits(char)));
}

function escapeUnits(char: string): string {
  return char.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Cuts spaces and tabs around a word. String.trim() would also repair line ends and no-break spaces. */
export function trimBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text[start])) start += 1;
  while (end > start && isBlank(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

function isBlank(char: string | undefined): boolean {
  return char === " " || char === "\t";
}
