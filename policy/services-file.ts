import { parseRange, type Range } from "./address.ts";
import { parseAllowlistFile, type PlacedWord } from "./allowlist-file.ts";
import { parseEntry } from "./entry.ts";
import { ConfigError, type Complaint, type Place } from "./errors.ts";
import { quote } from "./parsed.ts";

/** `allowlists/services.sh`: what every firewalled box may reach, and what must answer. */
export type ServicesFile = { allowed: readonly PlacedWord[]; critical: readonly PlacedWord[] };

/** `allowlists/github.sh`: GitHub's address blocks, where each stands (by its canonical text), and the day they were taken. */
export type GithubFile = { ranges: readonly Range[]; places: ReadonlyMap<string, Place>; date: string };

/** Parses the text of `allowlists/services.sh`; entries are judged later, by `buildEffectiveList`. */
export function parseServicesFile(file: string, text: string): ServicesFile {
  const { arrays } = parseAllowlistFile(file, text, { arrays: ["ALLOWED_SERVICES", "CRITICAL_SERVICES"], scalars: [], judge: judgeService });
  return { allowed: arrays.get("ALLOWED_SERVICES") ?? [], critical: arrays.get("CRITICAL_SERVICES") ?? [] };
}

/** The list as a whole is judged by `buildEffectiveList`; a file that gets no further shall still tell its wrong entries. */
function judgeService(array: string, { text, place }: PlacedWord): Complaint | undefined {
  const entry = array === "ALLOWED_SERVICES" ? parseEntry(text, "allowlist-file") : undefined;
  return entry === undefined || entry.ok ? undefined : { ...entry.complaint, place };
}

/** Parses the text of `allowlists/github.sh`. Every word must be a CIDR block or an address without ports. */
export function parseGithubFile(file: string, text: string): GithubFile {
  const { arrays, scalars } = parseAllowlistFile(file, text, { arrays: ["GITHUB_RANGES"], scalars: ["GITHUB_RANGES_DATE"] });
  const complaints: Complaint[] = [];
  const ranges = new Map<string, Range>();
  const places = new Map<string, Place>();
  for (const { text: word, place } of arrays.get("GITHUB_RANGES") ?? []) {
    const range = parseRange(word);
    if (!range.ok) complaints.push({ ...range.complaint, place });
    else if (range.value.prefix < 8) complaints.push({ what: `${quote(word)} is too large a block`, expected: "a prefix of at least /8", fix: "copy the blocks of the meta document", place });
    else {
      ranges.set(range.value.text, range.value);
      places.set(range.value.text, place);
    }
  }
  const date = scalars.get("GITHUB_RANGES_DATE");
  if (date !== undefined && !isDate(date.text)) {
    complaints.push({ what: `${quote(date.text)} is not a date`, expected: "YYYY-MM-DD", fix: "write the day the ranges were taken", place: date.place });
  }
  if (complaints.length > 0) throw new ConfigError(complaints);
  return { ranges: [...ranges.values()], places, date: date?.text ?? "" };
}

/** Turns the failure to read a list into a mistake of the user: lists are there to be edited, and may get lost. */
export function refuseUnreadable(file: string, error: unknown): ConfigError {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  const what = code === "ENOENT" ? "the file is missing" : `the file cannot be read (${code})`;
  return new ConfigError({ what, expected: "a readable file", fix: `restore it (git restore ${file}), then start again`, place: { file } }, { cause: error });
}

function isDate(text: string): boolean {
  const date = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : new Date(Number.NaN);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}
