import type { z } from "zod";
import { renderExcerpt } from "./config-excerpt.ts";
import { positionOf, type TomlText } from "./config-toml.ts";
import type { ConfigPath, Span } from "./config-span-index.ts";
import { readIssueParams, suggest } from "./config-words.ts";
import type { Complaint } from "./errors.ts";
import { quote } from "./parsed.ts";

type Issue = z.core.$ZodIssue;

/** What a complaint needs to know of the file: its name, its text with places, and the keys that each table knows. */
export type ComplaintContext = { file: string; toml: TomlText; keysAt: (path: ConfigPath) => readonly string[] };

/** More would scroll the first one away, which is often the cause of the others. */
const MAX_COMPLAINTS = 20;

/**
 * Turns issues of the schema into complaints, in the order of the file: each with its place, an excerpt
 * and what would be right. The first twenty, and one that counts the rest.
 */
export function describeIssues(issues: readonly Issue[], context: ComplaintContext): Complaint[] {
  const { file, toml } = context;
  const found = issues.flatMap((issue) => findMistakes(issue, [], context)).toSorted((a, b) => a.span.start - b.span.start);
  const complaints: Complaint[] = found.slice(0, MAX_COMPLAINTS).map(({ span, hidden, describe }) => ({
    ...describe(),
    place: { file, ...positionOf(toml.text, span.start) },
    excerpt: hidden ? undefined : renderExcerpt(toml.text, span),
  }));
  const rest = found.length - complaints.length;
  return rest === 0 ? complaints : [...complaints, { what: `${rest} further mistakes`, place: { file } }];
}

/** A mistake that is put into words only when it is shown: a file may hold ten thousands of them. */
type Found = { span: Span; hidden: boolean; describe: () => Complaint };

function findMistakes(issue: Issue, base: ConfigPath, context: ComplaintContext): Found[] {
  const path = [...base, ...toPath(issue.path)];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => atKey([...path, key], () => describeUnknownKey(path, key, context), context));
    case "invalid_union":
      return describeUnion(issue, path, context);
    case "invalid_key":
      return issue.issues.flatMap((inner) => (inner.code === "custom" ? [atKey(path, () => ({ what: inner.message, ...readIssueParams(inner.params) }), context)] : []));
    case "custom":
      return [atValue(path, () => ({ what: issue.message, ...readIssueParams(issue.params) }), context)];
    case "invalid_type":
      return [describeType(path, issue.expected, context)];
    case "invalid_value":
      return [describeValue(path, issue.values.map((value) => JSON.stringify(value)), context)];
    case "invalid_element":
    case "invalid_format":
    case "not_multiple_of":
    case "too_big":
    case "too_small":
      return [atValue(path, () => describeForm(path, context), context)];
  }
}

/** Forms that the schema states as a pattern or a limit, by the key; an index is not part of it. */
const EXPECTED: ReadonlyMap<string, string> = new Map([
  ["memory", "a size such as 2g or 512m"],
  ["cpus", "a number above 0 and at most 4096, such as 1.5"],
  ["ports", "whole numbers from 1 to 65535, one at least, such as [443]"],
  ["timeout", "whole seconds from 1 to 86400"],
  ["quota_bytes", "a whole number of bytes above 0"],
  ["quota_files", "a whole number above 0"],
  ["intent", "one word at least, or no such key for all"],
  ["extension", "one word at least, or no such key for all"],
  ["tags", "one word at least, or no such key for all"],
]);

/** The words of the schema's library are for programmers. */
function describeForm(path: ConfigPath, context: ComplaintContext): Complaint {
  const value = valueAt(path, context);
  const shown = typeof value === "string" ? quote(value) : Array.isArray(value) && value.length === 0 ? "an empty array" : nameType(value);
  return { what: `${renderPath(path)} is ${hidesValue(path) ? "not right" : shown}`, expected: EXPECTED.get(path.findLast((step) => typeof step === "string")?.toString() ?? "") };
}

/** An element of allow_hosts is a string or a table: a mistake in a table is told as such. */
function describeUnion(issue: Extract<Issue, { code: "invalid_union" }>, path: ConfigPath, context: ComplaintContext): Found[] {
  const meant = issue.errors.find((branch) => !branch.some(({ code, path: inner }) => code === "invalid_type" && inner.length === 0));
  if (meant !== undefined) return meant.flatMap((inner) => findMistakes(inner, path, context));
  return [atValue(path, () => ({ what: `${renderPath(path)} is ${nameType(valueAt(path, context))}`, expected: 'a string such as "api.example.com", or a table { host = …, ports = [ … ] }' }), context)];
}

function describeUnknownKey(path: ConfigPath, key: string, { keysAt }: ComplaintContext): Complaint {
  const known = keysAt(path);
  const where = path.length === 0 ? "the file" : `[${renderPath(path)}]`;
  return { what: `${where} has no key ${quote(key)}`, expected: known.join(", "), fix: suggest(key, known) };
}

const TYPE_NAMES: ReadonlyMap<string, string> = new Map([
  ["string", "a string in quotes"],
  ["boolean", "true or false"],
  ["number", "a number"],
  ["int", "a whole number"],
  ["array", "an array [ … ]"],
  ["object", "a table"],
  ["record", "a table"],
]);

function describeType(path: ConfigPath, expectedType: string, context: ComplaintContext): Found {
  const value = valueAt(path, context);
  const expected = TYPE_NAMES.get(expectedType) ?? expectedType;
  if (value === undefined) {
    const missing = path.at(-1) ?? "";
    return atValue(path.slice(0, -1), () => ({ what: `${renderPath(path.slice(0, -1))} has no ${missing}`, expected: `${missing} = ${expected}` }), context);
  }
  const single = expectedType === "array" && typeof value === "string" ? `write [${JSON.stringify(value)}]` : undefined;
  return atValue(path, () => ({ what: `${renderPath(path)} is ${nameType(value)}`, expected, fix: hidesValue(path) ? undefined : single }), context);
}

function describeValue(path: ConfigPath, known: readonly string[], context: ComplaintContext): Found {
  const value = valueAt(path, context);
  if (value === undefined) return describeType(path, known.join(" or "), context);
  const fix = typeof value === "string" ? suggest(value, known.map((word) => word.replaceAll('"', ""))) : undefined;
  const shown = typeof value === "string" ? quote(value) : nameType(value);
  return atValue(path, () => ({ what: `${renderPath(path)} is ${shown}`, expected: known.join(" or "), fix }), context);
}

function atValue(path: ConfigPath, describe: () => Complaint, { toml }: ComplaintContext): Found {
  return { span: toml.spans().nearestSpan(path), hidden: hidesValue(path), describe };
}

function atKey(path: ConfigPath, describe: () => Complaint, { toml }: ComplaintContext): Found {
  return { span: toml.spans().keySpan(path) ?? toml.spans().nearestSpan(path), hidden: hidesValue(path), describe };
}

/** Variables and the proxy's address may carry secrets. */
function hidesValue([table, key]: ConfigPath): boolean {
  return (table === "box" && key === "env") || (table === "build" && key === "proxy") || (table === "network_proxy" && key === "upstream_proxy");
}

function valueAt(path: ConfigPath, { toml }: ComplaintContext): unknown {
  return path.reduce<unknown>((value, step) => (typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, step)?.value : undefined), toml.value);
}

function nameType(value: unknown): string {
  if (typeof value === "string") return "a string";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return `the number ${value}`;
  if (value instanceof Date) return "a date";
  return Array.isArray(value) ? "an array" : "a table";
}

function renderPath(path: ConfigPath): string {
  const text = path.map((step, index) => (typeof step === "number" ? `[${step + 1}]` : `${index === 0 ? "" : "."}${/^[\w-]+$/.test(step) ? step : quote(step)}`)).join("");
  return text === "" ? "the file" : text;
}

function toPath(path: readonly PropertyKey[]): ConfigPath {
  return path.map((step) => (typeof step === "symbol" ? String(step) : step));
}
