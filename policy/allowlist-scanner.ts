import { describeLine, describeRest, EXPECTED_LINE, refuseBytes } from "./allowlist-mistakes.ts";
import { isDelimiter, scanWord } from "./bash-word.ts";
import type { Complaint, Place } from "./errors.ts";

/** One word of an allowlist file and where it stands. */
export type PlacedWord = { text: string; place: Place };

/**
 * The array whose words are being read. It is not `sure` when a mistake came before that may have ended
 * or begun it: then its end is not missed, and the next assignment ends it. So one mistake is told once.
 */
type Open = { name: string | undefined; words: PlacedWord[]; place: Place; sure: boolean };

const ASSIGNMENT = /^(?<name>[A-Z][A-Z0-9_]*)=(?<paren>\()?/;

/** Reads an allowlist file line by line and collects its mistakes; with none of them bash reads the same values. */
export class AllowlistScanner {
  readonly arrays = new Map<string, readonly PlacedWord[]>();
  readonly scalars = new Map<string, PlacedWord>();
  readonly places = new Map<string, Place>();
  readonly complaints: Complaint[] = [];
  private open: Open | undefined;
  private readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  scan(text: string): void {
    const { complaints, readable } = refuseBytes(this.file, text);
    this.complaints.push(...complaints);
    if (readable === undefined) return;
    readable.split("\n").forEach((line, index) => this.scanLine(line, index + 1));
    this.refuseOpen("a ) on a line of its own", "add it after the last word");
  }

  private scanLine(line: string, lineNumber: number): void {
    const start = skipBlanks(line, 0);
    if (start >= line.length || line[start] === "#") return;
    const next = ASSIGNMENT.exec(line.slice(start))?.groups;
    if (this.open !== undefined && next !== undefined && (next["paren"] !== undefined || !this.open.sure)) {
      this.refuseOpen(`a ) on a line of its own before ${next["name"] ?? ""}`, "add it after the last word", this.placeOf(lineNumber, start));
      this.close(this.open);
    }
    if (this.open === undefined) this.scanAssignment(line, lineNumber, start);
    else this.scanWords(line, lineNumber, start, this.open);
  }

  private scanAssignment(line: string, lineNumber: number, start: number): void {
    const match = ASSIGNMENT.exec(line.slice(start));
    const name = match?.groups?.["name"];
    if (match === null || name === undefined) return this.refuseLine(line, lineNumber, start);
    const place = this.placeOf(lineNumber, start);
    const earlier = this.places.get(name);
    if (earlier !== undefined) {
      this.refuse(lineNumber, start, `${name} is defined twice`, `one definition (the first is in line ${earlier.line})`, "merge the two: bash would keep only the last");
    }
    this.places.set(name, place);
    const after = start + match[0].length;
    if (match.groups?.["paren"] !== undefined) {
      this.open = { name, words: [], place, sure: true };
      return this.scanWords(line, lineNumber, after, this.open);
    }
    if (isDelimiter(line[after])) {
      this.refuse(lineNumber, after, `nothing right after ${name}=`, EXPECTED_LINE, `write the value or the ( right after the =, or ${name}="" for none`);
      return this.openRefused(line, lineNumber, after);
    }
    const word = scanWord(line, after);
    if (!word.ok) {
      this.refuse(lineNumber, word.at, word.what, word.expected, word.fix);
      return this.openRefused(line, lineNumber, after);
    }
    this.scalars.set(name, { text: word.text, place: this.placeOf(lineNumber, after) });
    this.refuseRest(line, lineNumber, word.end, `the value of ${name}`);
  }

  private scanWords(line: string, lineNumber: number, start: number, open: Open): void {
    for (let at = skipBlanks(line, start); at < line.length && line[at] !== "#"; ) {
      if (line[at] === ")") {
        this.close(open);
        return this.refuseRest(line, lineNumber, at + 1, open.name === undefined ? "a )" : `the end of ${open.name}`);
      }
      const word = scanWord(line, at);
      if (!word.ok) {
        this.refuse(lineNumber, word.at, open.name === undefined ? word.what : `${open.name}: ${word.what}`, word.expected, word.fix);
        // The rest of the line cannot be trusted: a ) in it may end the array or belong to the mistake.
        if (line.includes(")", at)) open.sure = false;
        return;
      }
      open.words.push({ text: word.text, place: this.placeOf(lineNumber, at) });
      at = skipBlanks(line, word.end);
    }
  }

  private close({ name, words }: Open): void {
    if (name !== undefined) this.arrays.set(name, words);
    this.open = undefined;
  }

  private refuseOpen(expected: string, fix: string, place?: Place): void {
    if (this.open === undefined || !this.open.sure) return;
    const { name, place: begin } = this.open;
    this.complaints.push({ what: `${name ?? "the array"} (line ${begin.line}) is not closed`, expected, fix, place: place ?? begin });
  }

  private refuseRest(line: string, lineNumber: number, end: number, what: string): void {
    const rest = skipBlanks(line, end);
    if (rest >= line.length || (line[rest] === "#" && rest > end)) return;
    this.refuse(lineNumber, rest, `text after ${what}`, "nothing but a comment", describeRest(line.slice(rest)));
  }

  private refuseLine(line: string, lineNumber: number, start: number): void {
    const { what, fix, kind } = describeLine(line.slice(start));
    this.refuse(lineNumber, start, what, EXPECTED_LINE, fix);
    // Words without an array are told once, at the first of them.
    if (kind === "words") this.open = this.openUnsure(lineNumber, start);
    else this.openRefused(line, lineNumber, start);
  }

  /** A refused array is still read, so that its words do not count as mistakes of their own. */
  private openRefused(line: string, lineNumber: number, start: number): void {
    if (/\([^)]*$/.test(line.slice(start))) this.open = this.openUnsure(lineNumber, start);
  }

  private openUnsure(lineNumber: number, start: number): Open {
    return { name: undefined, words: [], place: this.placeOf(lineNumber, start), sure: false };
  }

  private refuse(line: number, index: number, what: string, expected: string, fix: string): void {
    this.complaints.push({ what, expected, fix, place: this.placeOf(line, index) });
  }

  private placeOf(line: number, index: number): Place {
    return { file: this.file, line, column: index + 1 };
  }
}

function skipBlanks(line: string, start: number): number {
  let at = start;
  while (line[at] === " " || line[at] === "\t") at += 1;
  return at;
}
