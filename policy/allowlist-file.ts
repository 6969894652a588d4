import { AllowlistScanner, type PlacedWord } from "./allowlist-scanner.ts";
import { renderWord } from "./bash-word.ts";
import { ConfigError, type Complaint, type Place } from "./errors.ts";

export type { PlacedWord } from "./allowlist-scanner.ts";

/** What an allowlist file says: `NAME=( … )` arrays and `NAME=…` scalars, in the order of the file. */
export type AllowlistFile = {
  file: string;
  arrays: ReadonlyMap<string, readonly PlacedWord[]>;
  scalars: ReadonlyMap<string, PlacedWord>;
};

/** Which names a file of one kind must define, no more and no fewer. */
export type AllowlistShape = {
  arrays: readonly string[];
  scalars: readonly string[];
  /** Judges a word of an array. Asked only when the file is refused anyway, so that a user sees its values' mistakes too. */
  judge?: (array: string, word: PlacedWord) => Complaint | undefined;
};

/**
 * Parses the text of a file in `allowlists/`: bash arrays and scalars of plain words. The text is never
 * executed; whatever bash would have to evaluate is refused, so bash reads the same values. With a
 * shape, names that are missing or unknown are mistakes too. Throws one `ConfigError` holding every mistake.
 */
export function parseAllowlistFile(file: string, text: string, shape?: AllowlistShape): AllowlistFile {
  const scanner = new AllowlistScanner(file);
  scanner.scan(text);
  const { arrays, scalars, complaints, places } = scanner;
  if (shape !== undefined) complaints.push(...checkNames({ file, arrays, scalars }, { shape, places, sound: complaints.length === 0 }));
  if (complaints.length > 0) throw new ConfigError(inOrder([...complaints, ...judgeWords(arrays, shape)]));
  return { file, arrays, scalars };
}

/** Writes an allowlist file that parses to the same values: `parse(render(x))` equals `x` but for the places. */
export function renderAllowlistFile({ arrays, scalars }: Pick<AllowlistFile, "arrays" | "scalars">): string {
  const scalarLines = [...scalars].map(([name, word]) => `${name}=${renderWord(word.text)}\n`);
  const arrayLines = [...arrays].map(([name, words]) => `${name}=(\n${words.map(({ text }) => `  ${renderWord(text)}\n`).join("")})\n`);
  return [...scalarLines, ...arrayLines].join("\n");
}

function judgeWords(arrays: AllowlistFile["arrays"], { judge }: Pick<AllowlistShape, "judge"> = {}): readonly Complaint[] {
  if (judge === undefined) return [];
  const judged = [...arrays].flatMap(([name, words]) => words.map((word) => judge(name, word)));
  return judged.filter((complaint) => complaint !== undefined);
}

/** Sorts by line; what has no line stays at the end. */
function inOrder(complaints: readonly Complaint[]): readonly Complaint[] {
  return complaints.toSorted((a, b) => lineOf(a) - lineOf(b));
}

function lineOf({ place }: Complaint): number {
  return place?.line ?? Number.MAX_SAFE_INTEGER;
}

type NameCheck = { shape: AllowlistShape; places: ReadonlyMap<string, Place>; sound: boolean };

/** Names that are unknown, and those that are missing; in a file that is not sound a missing one may stand in what was not understood. */
function checkNames({ file, arrays, scalars }: AllowlistFile, { shape, places, sound }: NameCheck): readonly Complaint[] {
  const known = [...shape.arrays, ...shape.scalars];
  const expected = `exactly ${known.join(", ")}`;
  const unknown = [...places]
    .filter(([name]) => !known.includes(name))
    .map(([name, place]) => ({ what: `${name} is not known here`, expected, fix: "correct the name or remove it", place }));
  if (!sound) return unknown;
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
