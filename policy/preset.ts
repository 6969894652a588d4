import { parseAllowlistFile, type PlacedWord } from "./allowlist-file.ts";
import { parseEntry } from "./entry.ts";
import { ConfigError, type Complaint } from "./errors.ts";
import { quote } from "./parsed.ts";

/**
 * A named set of hosts from `allowlists/presets/ID.sh`. As ordered rules it reads: allow each entry,
 * then `catchAll` for every other host. Where presets are merged into a list, the catch-all is dropped.
 */
export type Preset = {
  id: string;
  title: string;
  description: string;
  /** Day on which the hosts were last looked at, YYYY-MM-DD. */
  date: string;
  entries: readonly PlacedWord[];
  catchAll: "allow" | "deny";
};

const SCALARS = ["PRESET_TITLE", "PRESET_DESCRIPTION", "PRESET_DATE", "PRESET_CATCH_ALL"];

/** Parses the text of one preset file. Throws one `ConfigError` with every mistake, malformed entries included. */
export function parsePreset(id: string, file: string, text: string): Preset {
  const { arrays, scalars } = parseAllowlistFile(file, text, { arrays: ["PRESET"], scalars: SCALARS });
  const entries = arrays.get("PRESET") ?? [];
  const complaints: Complaint[] = [];
  for (const { text: word, place } of entries) {
    const entry = parseEntry(word, "allowlist-file");
    if (!entry.ok) complaints.push({ ...entry.complaint, place });
  }
  const value = (name: string): string => scalars.get(name)?.text ?? "";
  const catchAll = value("PRESET_CATCH_ALL");
  if (catchAll !== "allow" && catchAll !== "deny") {
    complaints.push({ what: `PRESET_CATCH_ALL is ${quote(catchAll)}`, expected: "allow or deny", fix: "write deny, unless every host is meant to be open", place: scalars.get("PRESET_CATCH_ALL")?.place });
  }
  if (complaints.length > 0) throw new ConfigError(complaints);
  return { id, title: value("PRESET_TITLE"), description: value("PRESET_DESCRIPTION"), date: value("PRESET_DATE"), entries, catchAll: catchAll === "allow" ? "allow" : "deny" };
}
