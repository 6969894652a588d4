import { isDelimiter, renderWord, scanWord } from "./bash-word.ts";
import { ConfigError, type Complaint, type Place } from "./errors.ts";
import { quote } from "./parsed.ts";

/** One word of an allowlist file and where it stands. */
export type PlacedWord = { text: string; place: Place };

/** What an allowlist file says: `NAME=( … )` arrays and `NAME=…` scalars, in the order of the file. */
export type AllowlistFile = {
  file: string;
  arrays: ReadonlyMap<string, readonly PlacedWord[]>;
  scalars: ReadonlyMap<string, PlacedWord>;
};

/** Which names a file of one kind must define, no more and no fewer. */
export type AllowlistShape = { arrays: readonly string[]; scalars: readonly string[] };

const EXPECTED_LINE = 'NAME=( "word" … ), NAME="word", a # comment or a blank line';
const DECLARERS = /^(?:export|declare|typeset|readonly|local)\b/;

type Open = { name: string; words: PlacedWord[]; place: Place };

/**
 * Parses the text of a file in `allowlists/`: bash arrays and scalars of plain words. The text is never
 * executed; whatever bash would have to evaluate is refused, so bash reads the same values. With a
 * shape, names that are missing or unknown are mistakes too. Throws one `ConfigError` holding every mistake.
 */
export function parseAllowlistFile(file: string, text: string, shape?: AllowlistShape): AllowlistFile {
  const scanner = new Scanner(file);
  scanner.refuseBytes(text);
  if (scanner.complaints.length === 0) text.split("\n").forEach((line, index) => scanner.scanLine(line, index + 1));
  scanner.finish();
  const { arrays, scalars, complaints } = scanner;
  if (complaints.length === 0 && shape !== undefined) complaints.push(...checkShape({ file, arrays, scalars }, shape, scanner.places));
  if (complaints.length > 0) throw new ConfigError(complaints);
  return { file, arrays, scalars };
}

/** Writes an allowlist file that parses to the same values: `parse(render(x))` equals `x` but for the places. */
export function renderAllowlistFile({ arrays, scalars }: Pick<AllowlistFile, "arrays" | "scalars">): string {
  const scalarLines = [...scalars].map(([name, word]) => `${name}=${renderWord(word.text)}\n`);
  const arrayLines = [...arrays].map(([name, words]) => `${name}=(\n${words.map(({ text }) => `  ${renderWord(text)}\n`).join("")})\n`);
  return [...scalarLines, ...arrayLines].join("\n");
}

class Scanner {
  readonly arrays = new Map<string, readonly PlacedWord[]>();
  readonly scalars = new Map<string, PlacedWord>();
  readonly places = new Map<string, Place>();
  readonly complaints: Complaint[] = [];
  private open: Open | undefined;
  private readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  /** Refuses what an editor hides and bash does not: marks, line ends of other systems, control characters. */
  refuseBytes(text: string): void {
    if (text.startsWith("\ufeff")) this.refuse(1, 0, "the file begins with a byte order mark", "plain UTF-8", "save it without the mark (BOM)");
    text.split("\n").forEach((line, index) => {
      // oxlint-disable-next-line no-control-regex -- the control characters are meant
      const bad = /[\u0000-\u0008\u000b-\u001f\u007f\ufffd]/.exec(line);
      if (bad === null) return;
      const carriage = bad[0] === "\r";
      const what = carriage ? "a carriage return" : `the character ${quote(bad[0])}`;
      this.refuse(index + 1, bad.index, what, "UTF-8 text with Unix line ends", carriage ? "save the file with LF line ends" : "remove it");
    });
  }

  scanLine(line: string, lineNumber: number): void {
    const start = skipBlanks(line, 0);
    if (this.open !== undefined) this.scanWords(line, lineNumber, start, this.open);
    else if (start < line.length && line[start] !== "#") this.scanAssignment(line, lineNumber, start);
  }

  finish(): void {
    // After another mistake the closing parenthesis may have been part of what was skipped.
    if (this.open === undefined || this.complaints.length > 0) return;
    const { name, place } = this.open;
    this.complaints.push({ what: `the array ${name} is not closed`, expected: "a ) on a line of its own", fix: "add it after the last word", place });
  }

  private scanAssignment(line: string, lineNumber: number, start: number): void {
    const match = /^(?<name>[A-Z][A-Z0-9_]*)=(?<paren>\()?/.exec(line.slice(start));
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
      this.open = { name, words: [], place };
      return this.scanWords(line, lineNumber, after, this.open);
    }
    const word = scanWord(line, after);
    if (!word.ok) return this.refuse(lineNumber, word.at, word.what, word.expected, word.fix);
    this.scalars.set(name, { text: word.text, place: this.placeOf(lineNumber, after) });
    this.refuseRest(line, lineNumber, word.end, `the value of ${name}`);
  }

  private scanWords(line: string, lineNumber: number, start: number, open: Open): void {
    for (let at = skipBlanks(line, start); at < line.length && line[at] !== "#"; ) {
      if (line[at] === ")") {
        this.arrays.set(open.name, open.words);
        this.open = undefined;
        return this.refuseRest(line, lineNumber, at + 1, `the end of ${open.name}`);
      }
      const word = scanWord(line, at);
      if (!word.ok) {
        this.refuse(lineNumber, word.at, `${open.name}: ${word.what}`, word.expected, word.fix);
        // The rest of the line cannot be trusted; a parenthesis at its end still closes the array.
        if (/\)\s*(?:#.*)?$/.test(line)) this.open = undefined;
        return;
      }
      open.words.push({ text: word.text, place: this.placeOf(lineNumber, at) });
      at = skipBlanks(line, word.end);
    }
  }

  private refuseRest(line: string, lineNumber: number, end: number, what: string): void {
    const rest = skipBlanks(line, end);
    if (rest >= line.length || (line[rest] === "#" && rest > end)) return;
    const glued = rest === end && !isDelimiter(line[rest]);
    this.refuse(lineNumber, rest, `text after ${what}`, "nothing but a comment", glued ? "put a space before it" : "move it to a line of its own");
  }

  private refuseLine(line: string, lineNumber: number, start: number): void {
    const text = line.slice(start);
    const [what, fix] = describeLine(text);
    this.refuse(lineNumber, start, what, EXPECTED_LINE, fix);
    // A refused array is still read, so that its words do not count as mistakes of their own.
    if (/=\([^)]*$/.test(text)) this.open = { name: "the array", words: [], place: this.placeOf(lineNumber, start) };
  }

  private refuse(line: number, index: number, what: string, expected: string, fix: string): void {
    this.complaints.push({ what, expected, fix, place: this.placeOf(line, index) });
  }

  private placeOf(line: number, index: number): Place {
    return { file: this.file, line, column: index + 1 };
  }
}

function describeLine(text: string): readonly [what: string, fix: string] {
  if (DECLARERS.test(text)) return [`the command ${quote(text.split(/\s/)[0] ?? "")}`, "write the assignment alone"];
  if (/^[A-Za-z_]\w*\+=/.test(text)) return ["an array extended with +=", "write all words into one array"];
  if (/^[A-Za-z_]\w*\[/.test(text)) return ["an assignment to one element", "write the whole array"];
  if (/^[A-Za-z_]\w*[ \t]+=/.test(text)) return ["a space before =", "remove it"];
  if (/^[A-Za-z_]\w*=/.test(text)) return ["a name that is not in capitals", "write it as in the shipped file"];
  return [`${quote(text)} is neither an array nor a comment`, "put # in front of it, or move it into an array"];
}

function skipBlanks(line: string, start: number): number {
  let at = start;
  while (line[at] === " " || line[at] === "\t") at += 1;
  return at;
}

function checkShape(parsedFile: AllowlistFile, shape: AllowlistShape, places: ReadonlyMap<string, Place>): readonly Complaint[] {
  const { file, arrays, scalars } = parsedFile;
  const known = [...shape.arrays, ...shape.scalars];
  const expected = `exactly ${known.join(", ")}`;
  const unknown = [...places]
    .filter(([name]) => !known.includes(name))
    .map(([name, place]) => ({ what: `${name} is not known here`, expected, fix: "correct the name or remove it", place }));
  const missingArrays = shape.arrays.filter((name) => !arrays.has(name)).map((name) => ({ name, form: `${name}=( … )` }));
  const missingScalars = shape.scalars.filter((name) => !scalars.has(name)).map((name) => ({ name, form: `${name}="…"` }));
  const missing = [...missingArrays, ...missingScalars].map(({ name, form }) => ({
    what: `${name} is missing`,
    expected: form,
    fix: form.includes("(") ? `add it; an empty list is ${name}=()` : "add it",
    place: places.get(name) ?? { file },
  }));
  return [...unknown, ...missing];
}
