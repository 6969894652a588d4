import type { Complaint } from "./errors.ts";
import { quote } from "./parsed.ts";

/** What a line of an allowlist file may be, as messages show it. */
export const EXPECTED_LINE = 'NAME=( "word" … ), NAME="word", a # comment or a blank line';
const DECLARERS = /^(?:export|declare|typeset|readonly|local)\b/;

type LineMistake = { what: string; fix: string; kind: "assignment" | "words" | "end" };

/**
 * Refuses what an editor hides and bash does not: marks, line ends of other systems, control characters.
 * `readable` is the text to look for further mistakes in, undefined where that would only repeat these.
 */
export function refuseBytes(file: string, text: string): { complaints: Complaint[]; readable: string | undefined } {
  const expected = "UTF-8 text with Unix line ends";
  const windows = /\r(?=\n|$)/.exec(text);
  const readable = text.replaceAll(/\r(?=\n|$)/g, "");
  const complaints: Complaint[] = readable.startsWith("\ufeff")
    ? [{ what: "the file begins with a byte order mark", expected: "plain UTF-8", fix: "save it without the mark (BOM)", place: { file, line: 1, column: 1 } }]
    : [];
  readable.split("\n").forEach((line, index) => {
    // oxlint-disable-next-line no-control-regex -- the control characters are meant
    const bad = /[\u0000-\u0008\u000b-\u001f\u007f\ufffd]/.exec(line);
    if (bad !== null) complaints.push({ what: `the character ${quote(bad[0])}`, expected, fix: "remove it", place: { file, line: index + 1, column: bad.index + 1 } });
  });
  const unreadable = complaints.length > 0;
  if (windows !== null) complaints.unshift({ what: "the file has Windows line ends (CR LF)", expected, fix: "save it with LF line ends, for example by dos2unix", place: { file, line: 1 } });
  return { complaints, readable: unreadable ? undefined : readable };
}

/** Says what is wrong with a line that is no assignment, and whether it is meant as one. */
export function describeLine(text: string): LineMistake {
  const kind = "assignment";
  if (DECLARERS.test(text)) return { what: `the command ${quote(text.split(/\s/)[0] ?? "")}`, fix: "write the assignment alone", kind };
  if (/^[A-Za-z_]\w*\+=/.test(text)) return { what: "an array extended with +=", fix: "write all words into one array", kind };
  if (/^[A-Za-z_]\w*\[/.test(text)) return { what: "an assignment to one element", fix: "write the whole array", kind };
  if (/^[A-Za-z_]\w*[ \t]+=/.test(text)) return { what: "a space before =", fix: "remove it", kind };
  if (/^[A-Za-z_]\w*=/.test(text)) return { what: "a name that is not in capitals", fix: "write it as in the shipped file", kind };
  if (text.startsWith(")")) return { what: "a ) that closes no array", fix: "remove it, or open the array before its words", kind: "end" };
  return { what: `${quote(text)} is neither an array nor a comment`, fix: "put # in front of it, or move it into an array", kind: "words" };
}

/** Says how to mend what follows the end of an assignment on its line. */
export function describeRest(rest: string): string {
  if (/^;[ \t]*(?:#.*)?$/.test(rest)) return "remove the ;";
  return rest.startsWith("#") ? "put a space before it" : "move it to a line of its own";
}
