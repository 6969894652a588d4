import type { AST } from "toml-eslint-parser";
import { parseTree } from "./config-toml.ts";

/** One change of a text: what stands from `start` to `end` is replaced. */
export type Edit = { start: number; end: number; text: string };

/** A TOML text with its tree, and how it writes lines. */
export type EditableText = { text: string; tree: AST.TOMLProgram; lineEnd: "\n" | "\r\n" };

/** What can be edited: a key with its value, wherever and however it is written. */
export type Pair = AST.TOMLKeyValue;

export function readEditable(file: string, text: string): EditableText {
  // A mark is replaced by a space, so that offsets stay true; it is no part of any edit.
  const tree = parseTree(file, text.startsWith("\ufeff") ? ` ${text.slice(1)}` : text);
  return { text, tree, lineEnd: text.includes("\r\n") ? "\r\n" : "\n" };
}

/** Applies edits that do not overlap. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  return edits.toSorted((a, b) => b.start - a.start).reduce((result, { start, end, text: inserted }) => result.slice(0, start) + inserted + result.slice(end), text);
}

/** Finds the pair of `[table] key`, also as `table.key = …` and in `table = { key = … }`. The table may lie in another: `a.b`. */
export function findPair({ tree }: EditableText, table: string, key: string): Pair | undefined {
  const wanted = [...table.split("."), key];
  return listPairs(tree, wanted.length).find(({ path }) => isSamePath(path, wanted))?.pair;
}

/**
 * Makes the edit that writes a new key: in its table, beside its like, or in a new table at the end. Of a table in
 * another only the header is looked for; an edit of any other form does not pass its proof.
 */
export function insertPair(editable: EditableText, table: string, { key, value }: { key: string; value: string }): Edit {
  const { tree, text, lineEnd } = editable;
  const body = tree.body[0].body;
  const header = body.find((item) => item.type === "TOMLTable" && item.kind === "standard" && isSamePath(item.resolvedKey, table.split(".")));
  if (header?.type === "TOMLTable") {
    const last = header.body.at(-1) ?? header;
    return insertLine(editable, last, `${indentOf(text, header.body.at(-1) ?? header)}${key} = ${value}`);
  }
  const pairs = body.filter((item) => item.type === "TOMLKeyValue");
  const inline = pairs.find(({ key: { keys } }) => keys.length === 1 && nameOf(keys[0]) === table);
  if (inline?.value.type === "TOMLInlineTable") {
    const last = inline.value.body.at(-1);
    const start = last?.range[1] ?? inline.value.range[0] + 1;
    return { start, end: start, text: last === undefined ? ` ${key} = ${value} ` : `, ${key} = ${value}` };
  }
  const dotted = pairs.findLast(({ key: { keys } }) => keys.length > 1 && nameOf(keys[0]) === table);
  if (dotted !== undefined) return insertLine(editable, dotted, `${indentOf(text, dotted)}${table}.${key} = ${value}`);
  const empty = text.replace(/^\ufeff/, "") === "";
  const gap = empty ? "" : text.endsWith("\n") ? lineEnd : `${lineEnd}${lineEnd}`;
  return { start: text.length, end: text.length, text: `${gap}[${table}]${lineEnd}${key} = ${value}${lineEnd}` };
}

/** The blanks in front of what begins a line; nothing where something else stands before it. */
export function indentOf(text: string, { range: [start] }: { range: [number, number] }): string {
  const before = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  return /^[ \t]*$/.test(before) ? before : "";
}

/** Where the line ends that this offset is in, a carriage return not included. */
export function lineEndAt(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  if (end < 0) return text.length;
  return text[end - 1] === "\r" ? end - 1 : end;
}

function insertLine({ text, lineEnd }: EditableText, after: { range: [number, number] }, line: string): Edit {
  const at = lineEndAt(text, after.range[1]);
  return { start: at, end: at, text: `${lineEnd}${line}` };
}

type Path = readonly (string | number)[];

/** All pairs down to a depth of the path. */
function listPairs(tree: AST.TOMLProgram, depth: number): { path: Path; pair: Pair }[] {
  return tree.body[0].body.flatMap((item) => (item.type === "TOMLKeyValue" ? openPair(item, [], depth) : item.body.flatMap((pair) => openPair(pair, item.resolvedKey, depth))));
}

function openPair(pair: Pair, base: Path, depth: number): { path: Path; pair: Pair }[] {
  const path = [...base, ...pair.key.keys.map((part) => nameOf(part))];
  const inner = pair.value.type === "TOMLInlineTable" && path.length < depth ? pair.value.body.flatMap((deeper) => openPair(deeper, path, depth)) : [];
  return [{ path, pair }, ...inner];
}

function isSamePath(path: Path, wanted: readonly string[]): boolean {
  return path.length === wanted.length && wanted.every((step, index) => path[index] === step);
}

function nameOf(part: AST.TOMLBare | AST.TOMLQuoted | undefined): string {
  if (part === undefined) return "";
  return part.type === "TOMLBare" ? part.name : part.value;
}
