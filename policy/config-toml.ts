import { parse as parseValues, TomlError } from "smol-toml";
import { ParseError, parseTOML, type AST } from "toml-eslint-parser";
import { ConfigError } from "./errors.ts";
import { findOpenArray } from "./config-open-array.ts";
import { renderExcerpt } from "./config-excerpt.ts";
import { quote } from "./parsed.ts";

/** A key or an index at each step from the root. */
export type ConfigPath = readonly (string | number)[];

/** Offsets into the text, the end not included. */
export type Span = { start: number; end: number };

/** A TOML text read twice: its values, and where each of them and each key stands. */
export type TomlText = { text: string; value: unknown; keySpan(path: ConfigPath): Span | undefined; valueSpan(path: ConfigPath): Span | undefined };

/** More is no configuration: a file of this size holds ten thousands of hosts, which `allow_file` is for. */
const MAX_LENGTH = 1_048_576;

/** Tables in arrays in tables; the schema needs four. */
const MAX_DEPTH = 16;

const MARK = "\ufeff";

/**
 * Parses TOML 1.0. A byte order mark is overlooked. Two parsers have to agree that the text is TOML: one gives the values,
 * the other the places. Throws ConfigError at the first mistake of syntax, with place and excerpt.
 */
export function parseToml(file: string, text: string): TomlText {
  if (text.length > MAX_LENGTH) throw new ConfigError({ what: "the file is larger than 1 MiB", expected: "a configuration of a few lines", fix: "move long lists of hosts to a file of their own and name it as allow_file", place: { file } });
  // Of the same length, so that offsets stay true.
  const unmarked = text.startsWith(MARK) ? ` ${text.slice(1)}` : text;
  refuseCharacters(file, unmarked);
  const tree = parseTree(file, unmarked);
  const value = readValues(file, unmarked);
  const spans = new SpanIndex();
  for (const item of tree.body[0].body) spans.addItem(item, []);
  return { text: unmarked, value, keySpan: (path) => spans.keys.get(JSON.stringify(path)), valueSpan: (path) => spans.values.get(JSON.stringify(path)) };
}

/** Reads the tree alone, for edits. Throws ConfigError as `parseToml` does. */
export function parseTree(file: string, text: string): AST.TOMLProgram {
  try {
    return parseTOML(text, { tomlVersion: "1.0" });
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw refuse({ file, text, offset: error.index, message: describeSyntax(error.message, text, error.index) });
  }
}

function readValues(file: string, text: string): unknown {
  try {
    return parseValues(text, { maxDepth: MAX_DEPTH });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const lineStart = text.split("\n").slice(0, error.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    const [first = ""] = error.message.split("\n");
    throw refuse({ file, text, offset: lineStart + error.column - 1, message: { what: first.replace(/^Invalid TOML document: /, "") } });
  }
}

function refuseCharacters(file: string, text: string): void {
  // oxlint-disable-next-line no-control-regex -- the control characters are meant
  const bad = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ufffd]|\r(?!\n)/.exec(text);
  if (bad !== null) throw refuse({ file, text, offset: bad.index, message: { what: `the character ${quote(bad[0])}`, fix: "remove it, or write it as an escape in a string", expected: "UTF-8 text" } });
}

type SyntaxMessage = { what: string; expected?: string; fix?: string };

function refuse({ file, text, offset, message }: { file: string; text: string; offset: number; message: SyntaxMessage }): ConfigError {
  return new ConfigError({ ...message, place: { file, ...positionOf(text, offset) }, excerpt: renderExcerpt(text, { start: offset, end: offset + 1 }) });
}

/** Line and column of an offset, both from 1. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}

/** Says in the words of this product what the parser found; its own words stand where it found something rare. */
function describeSyntax(said: string, text: string, offset: number): SyntaxMessage {
  if (said.startsWith("Defining a key")) {
    const key = /^[^\s=\].]+/.exec(text.slice(offset))?.[0] ?? "";
    return { what: `${key === "" ? "a key" : quote(key)} is written twice`, expected: "each key and each [table] once", fix: "merge the two into one" };
  }
  const array = said.startsWith("Unterminated string") ? undefined : findOpenArray(text, offset);
  if (array !== undefined) return { what: `the array that opens on line ${array} is not closed`, expected: "a ] at its end" };
  if (said.startsWith("Unspecified values")) return { what: "there is no value after =", expected: 'a value, such as "text", true, 8080 or ["a", "b"]' };
  if (said.startsWith("Unterminated string")) return { what: "a string is not closed", expected: "the same quote at both ends, on one line" };
  if (said.startsWith("Unterminated array")) return { what: "an array is not closed", expected: "a ] at its end" };
  if (said.startsWith("Trailing comma") || said.startsWith("No newlines")) return { what: "an inline table { … } has a comma at its end or spans lines", expected: 'one line, such as { host = "db", ports = [5432] }' };
  if (said.startsWith("Unexpected character") && /^[A-Za-z*]/.test(text.slice(offset))) return { what: "a text without quotes", expected: 'quotes around it: "text"' };
  return { what: said.charAt(0).toLowerCase() + said.slice(1) };
}

/** Collects the spans of a tree by path. A table's own span is its header's; later parts of it do not move it. */
class SpanIndex {
  readonly keys = new Map<string, Span>();
  readonly values = new Map<string, Span>();

  addItem(item: AST.TOMLTable | AST.TOMLKeyValue, base: ConfigPath): void {
    if (item.type === "TOMLKeyValue") {
      const path = this.addKeys(item.key, base);
      this.values.set(JSON.stringify(path), spanOf(item.value));
      this.addContent(item.value, path);
      return;
    }
    const path = item.resolvedKey;
    // Indices stand among the keys of an array of tables; the parts of the header are the names alone.
    const names = item.key.keys;
    let at = 0;
    path.slice(0, MAX_DEPTH).forEach((step, index) => {
      const name = typeof step === "string" ? names[at++] : names[at - 1];
      if (name !== undefined) this.addOnce(path.slice(0, index + 1), spanOf(name));
    });
    for (const pair of item.body) this.addItem(pair, path);
  }

  private addKeys(key: AST.TOMLKey, base: ConfigPath): ConfigPath {
    let path = base;
    // No key of the schema lies deeper, and each step costs its whole path.
    for (const part of key.keys.slice(0, MAX_DEPTH)) {
      path = [...path, part.type === "TOMLBare" ? part.name : part.value];
      this.addOnce(path, spanOf(part));
    }
    return path;
  }

  private addContent(node: AST.TOMLContentNode, path: ConfigPath): void {
    if (node.type === "TOMLInlineTable") for (const pair of node.body) this.addItem(pair, path);
    if (node.type !== "TOMLArray") return;
    node.elements.forEach((element, index) => {
      this.values.set(JSON.stringify([...path, index]), spanOf(element));
      this.addContent(element, [...path, index]);
    });
  }

  private addOnce(path: ConfigPath, span: Span): void {
    const id = JSON.stringify(path);
    if (!this.keys.has(id)) this.keys.set(id, span);
  }
}

function spanOf({ range: [start, end] }: { range: [number, number] }): Span {
  return { start, end };
}
