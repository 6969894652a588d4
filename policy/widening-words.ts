import type { NamedText } from "./config-difference.ts";
import type { Config } from "./config-schema.ts";

/** A value of a configuration as a person reads it. */
export function renderValue(value: unknown): string {
  if (value === undefined) return "(not set)";
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.map(renderValue).join(", ") : JSON.stringify(value);
}

/**
 * Finds the text of the file that `allow_file` names among those that were read with a configuration: the
 * first whose name ends alike, since the names are relative to different directories.
 */
export function pickAllowFile({ network }: Config, named: readonly NamedText[]): NamedText | undefined {
  const file = network?.allow_file;
  return file === undefined ? undefined : named.find(({ name }) => lastPart(name) === lastPart(file));
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
