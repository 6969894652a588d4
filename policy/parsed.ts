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
  return JSON.stringify(short).replaceAll(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Cuts spaces and tabs around a word. String.trim() would also repair line ends and no-break spaces. */
export function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
}
