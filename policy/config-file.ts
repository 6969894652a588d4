import { z } from "zod";
import { describeIssues } from "./config-complaint.ts";
import { renderExcerpt } from "./config-excerpt.ts";
import { makeConfigSchema, type Config, type SchemaJudges } from "./config-schema.ts";
import type { ConfigPath } from "./config-span-index.ts";
import { parseToml } from "./config-toml.ts";
import { ConfigError, type Complaint, type Place } from "./errors.ts";

/** A configuration as it was read: its name in messages, its text, its values, and where each of them stands. */
export type ParsedConfig = {
  file: string;
  text: string;
  config: Config;
  /** Where a value stands, or the nearest thing above it: `["network", "allow_hosts", 2]`. */
  placeOf: (path: ConfigPath) => Place;
};

/**
 * Parses and judges a configuration file. `file` is its name in messages; `presets` are the ids that exist,
 * not asked when left out; with `isPublicSuffix` wildcards over public suffixes are refused here, with a
 * caret, and not first by `buildBoxPolicy`. Throws one ConfigError with every mistake, but only the first one
 * where the text is no TOML.
 */
export function parseConfig({ file, text, ...judges }: { file: string; text: string } & SchemaJudges): ParsedConfig {
  const toml = parseToml(file, text);
  const result = makeConfigSchema(judges).safeParse(toml.value, { reportInput: false });
  if (!result.success) throw new ConfigError(describeIssues(result.error.issues, { file, toml, keysAt }));
  return {
    file,
    text,
    config: result.data,
    placeOf: (path) => ({ file, ...toml.locate(path) }),
  };
}

/** Adds excerpts to complaints about a file whose text is at hand, such as those of `buildBoxPolicy` about words of a configuration. */
export function addExcerpts(complaints: readonly Complaint[], { file, text }: { file: string; text: string }): Complaint[] {
  const lines = text.split("\n");
  return complaints.map((complaint) => {
    const { place, excerpt } = complaint;
    if (place?.file !== file || place.line === undefined || place.column === undefined || excerpt !== undefined) return complaint;
    const start = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + place.column - 1;
    const word = /^(?:"[^"\n]*"|'[^'\n]*'|\S+)/.exec(text.slice(start))?.[0] ?? "";
    return { ...complaint, excerpt: renderExcerpt(text, { start, end: start + word.length }) };
  });
}

/** The keys that the schema knows at a path; the schema itself is asked, so that the two never differ. */
export function keysAt(path: ConfigPath): readonly string[] {
  return keysBelow(makeConfigSchema(), path);
}

function keysBelow(schema: unknown, path: ConfigPath): readonly string[] {
  if (schema instanceof z.ZodOptional) return keysBelow(schema.unwrap(), path);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => [...keysBelow(option, path)]);
  const [step, ...rest] = path;
  if (schema instanceof z.ZodArray && typeof step === "number") return keysBelow(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  return step === undefined ? Object.keys(schema.shape) : keysBelow(Object.hasOwn(schema.shape, step) ? schema.shape[step] : undefined, rest);
}
