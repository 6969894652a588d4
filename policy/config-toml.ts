import { parse as parseValues, TomlError } from "smol-toml";
import { ParseError, parseTOML, type AST } from "toml-eslint-parser";
import { ConfigError } from "./errors.ts";
import { renderExcerpt } from "./config-excerpt.ts";
import { findOpenArray } from "./config-open-array.ts";
import { findPlainPlace, scanPlainToml } from "./config-plain-toml.ts";
import { type ConfigPath, MAX_DEPTH, SpanIndex } from "./config-span-index.ts";
import { quote } from "./parsed.ts";

/** A position in a text, both from 1. */
type Position = { line: number; column: number };

/** A TOML text read twice: its values, and where they stand. */
export type TomlText = {
  text: string;
  value: unknown;
  /** Where each value and each key stands; made when it is first asked for. */
  spans: () => SpanIndex;
  /** Where a value begins, or the nearest thing above it. */
  locate: (path: ConfigPath) => Position;
};

/** More is no configuration: a file of this size holds ten thousands of hosts, which `allow_file` is for. */
const MAX_LENGTH = 1_048_576;

const MARK = "\ufeff";

/**
 * Parses TOML 1.0. A byte order mark is overlooked. Two readers have to agree that the text is TOML: one gives the values, the
 * other the places; for a text that is not plain, and for one with a mistake in it, that is the one that makes a whole tree, which
 * takes half a second for ten thousand rules. Throws ConfigError at the first mistake of syntax, with place and excerpt.
 */
export function parseToml(file: string, text: string): TomlText {
  if (text.length > MAX_LENGTH) throw new ConfigError({ what: "the file is larger than 1 MiB", expected: "a configuration of a few lines", fix: "move long lists of hosts to a file of their own and name it as allow_file", place: { file } });
  // Of the same length, so that offsets stay true.
  const unmarked = text.startsWith(MARK) ? ` ${text.slice(1)}` : text;
  refuseCharacters(file, unmarked);
  const plain = scanPlainToml(unmarked);
  let index = plain === undefined ? new SpanIndex(parseTree(file, unmarked)) : undefined;
  const value = readValues(file, unmarked);
  const spans = (): SpanIndex => (index ??= new SpanIndex(parseTree(file, unmarked)));
  let starts: readonly number[] | undefined;
  const locate = (path: ConfigPath): Position => {
    starts ??= findLineStarts(unmarked);
    return positionIn(starts, findPlainPlace(plain, path) ?? spans().nearestSpan(path).start);
  };
  return { text: unmarked, value, spans, locate };
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
    // What the other one finds as well it says in better words.
    parseTree(file, text);
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
export function positionOf(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}

/** The same for many offsets of one text, by the offsets at which its lines begin. */
function positionIn(starts: readonly number[], offset: number): Position {
  let [first, last] = [0, starts.length - 1];
  while (first < last) {
    const middle = Math.ceil((first + last) / 2);
    if ((starts[middle] ?? 0) <= offset) first = middle;
    else last = middle - 1;
  }
  return { line: first + 1, column: offset - (starts[first] ?? 0) + 1 };
}

function findLineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) starts.push(end + 1);
  return starts;
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
