import { parse as parseValues, TomlError } from "smol-toml";
import type { AST } from "toml-eslint-parser";
import { z } from "zod";
import { parseBlock, renderBlock } from "./block.ts";
import { appendElement, removeElement } from "./config-edit-array.ts";
import { applyEdits, findPair, insertPair, readEditable, type Edit, type EditableText, type Pair } from "./config-edit-tree.ts";
import { renderHostTable } from "./config-words.ts";
import { parseToml, positionOf } from "./config-toml.ts";
import { parseEntry, renderEntry } from "./entry.ts";
import { ConfigError, type Complaint } from "./errors.ts";
import { parsed, type Parsed } from "./parsed.ts";

/** A value that `setKey` writes. */
export type EditValue = string | number | boolean | readonly string[];

const DEFAULT_FILE = ".agentbox/config.toml";

/**
 * Adds an entry to allow_hosts and returns the new text; everything else stays as it is written, byte for
 * byte. Nothing is changed where the entry is there already, in any form. Throws ConfigError for a
 * malformed entry, and where the text cannot be edited safely: it then shows the line to write by hand.
 */
export function addAllowHost(text: string, entry: string, file = DEFAULT_FILE): string {
  return addWord({ text, file, key: "allow_hosts", word: entry, canonical: canonicalHost });
}

/** Removes every element of allow_hosts that is this entry, in any form. Throws as `addAllowHost` does. */
export function removeAllowHost(text: string, entry: string, file = DEFAULT_FILE): string {
  return removeWord({ text, file, key: "allow_hosts", word: entry, canonical: canonicalHost });
}

/** Adds a host or glob to block_hosts. Throws as `addAllowHost` does. */
export function addBlockHost(text: string, block: string, file = DEFAULT_FILE): string {
  return addWord({ text, file, key: "block_hosts", word: block, canonical: canonicalBlock });
}

/** Removes every element of block_hosts that is this block, in any form. Throws as `addAllowHost` does. */
export function removeBlockHost(text: string, block: string, file = DEFAULT_FILE): string {
  return removeWord({ text, file, key: "block_hosts", word: block, canonical: canonicalBlock });
}

/** Adds a host to allowed_domains, which the stand-alone proxy reads. Throws as `addAllowHost` does. */
export function addAllowedDomain(text: string, entry: string, file = DEFAULT_FILE): string {
  return addWord({ text, file, table: "network_proxy.policy", key: "allowed_domains", word: entry, canonical: canonicalHost });
}

/** Adds the id of a preset; whether it exists is not asked. Throws as `addAllowHost` does. */
export function addPreset(text: string, id: string, file = DEFAULT_FILE): string {
  return addWord({ text, file, key: "presets", word: id, canonical: canonicalId });
}

/** Sets `[table] key` to a value. An array whose comments would be lost is left to be edited by hand. */
export function setKey(text: string, { table, key, value, file = DEFAULT_FILE }: { table: string; key: string; value: EditValue; file?: string }): string {
  const before = parseToml(file, text).value;
  const editable = readEditable(file, text);
  const rendered = renderValue(value);
  const pair = findPair(editable, table, key);
  if (pair !== undefined && sortKeys(readTable(before, table)?.[key]) === sortKeys(value)) return text;
  const line = `[${table}] ${key} = ${rendered}`;
  const comments = editable.tree.comments.some(({ range: [start] }) => pair !== undefined && start > pair.value.range[0] && start < pair.value.range[1]);
  if (comments) throw refuseEdit(editable, file, pair, line);
  const edit = pair === undefined ? insertPair(editable, table, { key, value: rendered }) : { start: pair.value.range[0], end: pair.value.range[1], text: rendered };
  return proveEdit({ editable, file, edits: [edit], line, expected: withKey(before, { table, key, value }), pair });
}

type WordEdit = { text: string; file: string; /** `network` when left out. */ table?: string; key: string; word: string; canonical: (element: unknown) => Parsed<string> };

function addWord({ text, file, table = "network", key, word, canonical }: WordEdit): string {
  const wanted = canonical(word);
  if (!wanted.ok) throw new ConfigError({ ...wanted.complaint, place: { file } });
  const before = parseToml(file, text).value;
  const elements = readElements(before, table, key);
  // The tree of a long file takes time, which only an edit is worth.
  if (elements.some((element) => isSame(canonical(element), wanted.value))) return text;
  const editable = readEditable(file, text);
  const pair = findPair(editable, table, key);
  const line = `[${table}] ${key} = [${JSON.stringify(word)}]`;
  if (pair !== undefined && pair.value.type !== "TOMLArray") throw refuseEdit(editable, file, pair, line);
  const edits = pair?.value.type === "TOMLArray" ? appendElement(editable, pair.value, word) : [insertPair(editable, table, { key, value: `[${JSON.stringify(word)}]` })];
  return proveEdit({ editable, file, edits, line, expected: withKey(before, { table, key, value: [...elements, word] }), pair });
}

function removeWord({ text, file, key, word, canonical }: WordEdit): string {
  const wanted = canonical(word);
  if (!wanted.ok) throw new ConfigError({ ...wanted.complaint, place: { file } });
  const before = parseToml(file, text).value;
  const elements = readElements(before, "network", key);
  const index = elements.findIndex((element) => isSame(canonical(element), wanted.value));
  if (index < 0) return text;
  const editable = readEditable(file, text);
  const pair = findPair(editable, "network", key);
  if (pair?.value.type !== "TOMLArray") return text;
  const node: AST.TOMLContentNode | undefined = pair.value.elements[index];
  if (node === undefined) return text;
  const left = elements.filter((_, at) => at !== index);
  const line = `[network] ${key}, without ${JSON.stringify(word)}`;
  const edited = proveEdit({ editable, file, edits: removeElement(editable, pair.value, node), line, expected: withKey(before, { table: "network", key, value: left }), pair });
  // The same entry may stand there in several forms.
  return removeWord({ text: edited, file, key, word, canonical });
}

type Proof = { editable: EditableText; file: string; edits: readonly Edit[]; line: string; expected: unknown; pair: Pair | undefined };

/** The edited text is read again by the other parser: anything but the one change, or a comment less, and nothing is edited. */
function proveEdit({ editable, file, edits, line, expected, pair }: Proof): string {
  const result = applyEdits(editable.text, edits);
  try {
    const same = sortKeys(parseValues(result)) === sortKeys(expected);
    if (same && listComments(readEditable(file, result).tree) === listComments(editable.tree)) return result;
  } catch (error) {
    // The text is not TOML any more: to be edited by hand, as below.
    if (!(error instanceof TomlError || error instanceof ConfigError)) throw error;
  }
  throw refuseEdit(editable, file, pair, line);
}

function listComments(tree: AST.TOMLProgram): string {
  return JSON.stringify(tree.comments.map(({ value }) => value));
}

function refuseEdit({ text }: EditableText, file: string, pair: Pair | undefined, line: string): ConfigError {
  const place = pair === undefined ? { file } : { file, ...positionOf(text, pair.range[0]) };
  const complaint: Complaint = { what: "the file is written in a way that is not safe to edit", expected: "an array of strings", fix: `edit it by hand: ${line}`, place };
  return new ConfigError(complaint);
}

const tableValue = z.record(z.string(), z.unknown());

function readTable(value: unknown, table: string): Record<string, unknown> | undefined {
  return table.split(".").reduce<Record<string, unknown> | undefined>((found, step) => tableValue.safeParse(found?.[step]).data, tableValue.safeParse(value).data);
}

function readElements(value: unknown, table: string, key: string): unknown[] {
  return z.array(z.unknown()).safeParse(readTable(value, table)?.[key]).data ?? [];
}

function withKey(value: unknown, { table, key, value: set }: { table: string; key: string; value: unknown }): unknown {
  const [first = "", ...rest] = table.split(".");
  const whole = tableValue.safeParse(value).data;
  const inner = rest.length === 0 ? { ...readTable(value, first), [key]: set } : withKey(whole?.[first], { table: rest.join("."), key, value: set });
  return { ...whole, [first]: inner };
}

/** JSON with keys in order: TOML tables have none. */
function sortKeys(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    const table = Array.isArray(inner) ? undefined : tableValue.safeParse(inner).data;
    return table === undefined ? inner : Object.fromEntries(Object.entries(table).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function renderValue(value: EditValue): string {
  return typeof value === "object" ? `[${value.map((word) => JSON.stringify(word)).join(", ")}]` : JSON.stringify(value);
}

const hostTable = z.object({ host: z.string(), ports: z.array(z.number()).optional(), protocol: z.literal("tcp").optional(), private: z.literal(false).optional() });

function canonicalHost(element: unknown): Parsed<string> {
  const table = hostTable.safeParse(element);
  if (table.success) return renderHostTable(table.data);
  const entry = parseEntry(readText(element), "list");
  return entry.ok ? parsed(renderEntry(entry.value)) : entry;
}

function canonicalBlock(element: unknown): Parsed<string> {
  const block = parseBlock(readText(element));
  return block.ok ? parsed(renderBlock(block.value)) : block;
}

function canonicalId(element: unknown): Parsed<string> {
  return parsed(readText(element));
}

// Other values are no words; the empty one is none either, and equals nothing that is asked for.
function readText(element: unknown): string {
  return typeof element === "string" ? element : "";
}

function isSame(found: Parsed<string>, wanted: string): boolean {
  return found.ok && found.value === wanted;
}
