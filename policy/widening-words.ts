/** A value of a configuration as a person reads it. */
export function renderValue(value: unknown): string {
  if (value === undefined) return "(not set)";
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.map(renderValue).join(", ") : JSON.stringify(value);
}

/** The last part of a path: names of the same file are relative to different directories, and share it. */
export function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
