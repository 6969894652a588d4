import { addExcerpts } from "./config-file.ts";
import { isForeignFile } from "./config-difference.ts";
import { ConfigError, type Complaint, type Place } from "./errors.ts";
import { parseEntry } from "./entry.ts";
import { trimBlanks } from "./parsed.ts";

/** A line of an `allow_file`, with the place of its first character. */
type AllowLine = { text: string; place: Place };

const MAX_COMPLAINTS = 20;

/**
 * Parses an `allow_file`: one entry a line as in allow_hosts, blank lines, and comments from a `#` that
 * begins a line or follows a blank. `file` is its name in messages. Throws one ConfigError with every malformed
 * line; what a line holds is told only of a file of the project.
 */
export function parseAllowFile({ file, text }: { file: string; text: string }): AllowLine[] {
  const words: AllowLine[] = [];
  const complaints: Complaint[] = [];
  text.replace(/^\ufeff/, "").split(/\r?\n/).forEach((line, index) => {
    const word = trimBlanks(line.replace(/(?:^|[ \t])#.*$/s, ""));
    if (word === "") return;
    const place = { file, line: index + 1, column: line.indexOf(word) + 1 };
    const entry = parseEntry(word, "list");
    if (entry.ok) words.push({ text: word, place });
    else if (isForeignFile(file)) complaints.push({ what: "the line is no entry", expected: "one host a line, as in allow_hosts", place: { file, line: index + 1 } });
    else complaints.push({ ...entry.complaint, place });
  });
  if (complaints.length === 0) return words;
  const first = complaints.slice(0, MAX_COMPLAINTS);
  const shown = isForeignFile(file) ? first : addExcerpts(first, { file, text });
  const rest = complaints.length - shown.length;
  throw new ConfigError(rest === 0 ? shown : [...shown, { what: `${rest} further mistakes`, place: { file } }]);
}
