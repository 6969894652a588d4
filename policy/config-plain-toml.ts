import type { ConfigPath } from "./config-span-index.ts";

/** Where the values of a TOML text begin: by `table.key`, and each element of an array; an array of tables by the last name in its headers. */
export type PlainPlaces = ReadonlyMap<string, { start: number; elements: readonly number[] }>;

const KEY = String.raw`[\w-]+`;
const PATH = String.raw`${KEY}(?:\.${KEY})*`;
const SCALAR = String.raw`(?:"[^"\\\n]*"|'[^'\n]*'|true|false|[+-]?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?)`;
// Bounded, so that no text makes the expression remember much.
const ARRAY = String.raw`\[[ \t]*(?:${SCALAR}(?:[ \t]*,[ \t]*${SCALAR}){0,99}[ \t]*,?[ \t]*)?\]`;
const PAIR = String.raw`${KEY}[ \t]*=[ \t]*(?:${SCALAR}|${ARRAY})`;
const TABLE = String.raw`\{[ \t]*(?:${PAIR}(?:[ \t]*,[ \t]*${PAIR}){0,19}[ \t]*)?\}`;

const BLANKS = /[ \t]*/y;
const LINE_BREAK = /(?:#[^\n]*)?\r?\n|#[^\n]*$/y;
const LINE_END = /[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/y;
const HEADER = new RegExp(String.raw`\[(${PATH})\]`, "y");
const ARRAY_HEADER = new RegExp(String.raw`\[\[(${PATH})\]\]`, "y");
const ASSIGNMENT = new RegExp(String.raw`(${PATH})[ \t]*=[ \t]*`, "y");
const ELEMENT = new RegExp(`${SCALAR}|${TABLE}|${ARRAY}`, "y");

/**
 * Finds the places in a TOML text as nearly all configurations are written, in a small part of the time that a tree takes:
 * bare keys, strings of one line without escapes, plain numbers, inline tables of plain values. Undefined for a text that holds
 * anything else, right or wrong: the whole parser then says which. Knows nothing of keys that are written twice.
 */
export function scanPlainToml(text: string): PlainPlaces | undefined {
  return new PlainScanner(text).scan();
}

/** Finds where the value of a path begins, as far as the scan has seen it. */
export function findPlainPlace(places: PlainPlaces | undefined, path: ConfigPath): number | undefined {
  const last = path.at(-1);
  const names = typeof last === "number" ? path.slice(0, -1) : path;
  // Bare keys hold no dot, so that a path has one name.
  if (names.some((step) => typeof step === "number" || step.includes("."))) return undefined;
  const place = places?.get(names.join("."));
  return typeof last === "number" ? place?.elements[last] : place?.start;
}

class PlainScanner {
  private readonly text: string;
  private at = 0;
  private readonly places = new Map<string, { start: number; elements: number[] }>();
  /** The table that pairs belong to, with its dot; undefined within an array of tables. */
  private table: string | undefined = "";

  constructor(text: string) {
    this.text = text;
  }

  scan(): PlainPlaces | undefined {
    for (this.skipLines(); this.at < this.text.length; this.skipLines()) {
      const taken = this.text[this.at] === "[" ? this.takeHeader() : this.takePair();
      if (!taken || !this.take(LINE_END)) return undefined;
    }
    return this.places;
  }

  private takeHeader(): boolean {
    const begin = this.at;
    const path = this.capture(HEADER);
    if (path !== undefined) {
      this.table = `${path}.`;
      return !this.places.has(path) && !this.isInside(path);
    }
    const list = this.capture(ARRAY_HEADER);
    if (list === undefined || this.isInside(list)) return false;
    this.table = undefined;
    const start = begin + "[[".length + list.lastIndexOf(".") + 1;
    const place = this.places.get(list) ?? { start, elements: [] };
    this.places.set(list, place);
    place.elements.push(start);
    return true;
  }

  /** Whether a header leads into an array of tables, whose elements its name does not tell apart. */
  private isInside(path: string): boolean {
    for (let dot = path.indexOf("."); dot >= 0; dot = path.indexOf(".", dot + 1)) if (this.places.has(path.slice(0, dot))) return true;
    return false;
  }

  private takePair(): boolean {
    const key = this.capture(ASSIGNMENT);
    if (key === undefined) return false;
    const start = this.at;
    const elements = this.text[start] === "[" ? this.takeElements() : this.take(ELEMENT) ? [] : undefined;
    if (elements === undefined) return false;
    if (this.table === undefined) return true;
    const path = `${this.table}${key}`;
    if (this.places.has(path)) return false;
    this.places.set(path, { start, elements });
    return true;
  }

  /** An array that may span lines; its elements may not. */
  private takeElements(): number[] | undefined {
    const elements: number[] = [];
    this.at += 1;
    for (;;) {
      this.skipLines();
      if (this.takeChar("]")) return elements;
      elements.push(this.at);
      if (!this.take(ELEMENT)) return undefined;
      this.skipLines();
      if (!this.takeChar(",")) return this.takeChar("]") ? elements : undefined;
    }
  }

  /** Blanks, line ends and comments, whole lines of them as well. */
  private skipLines(): void {
    this.take(BLANKS);
    while (this.take(LINE_BREAK)) this.take(BLANKS);
  }

  private takeChar(char: string): boolean {
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  private take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }

  private capture(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[1];
    if (found !== undefined) this.at = pattern.lastIndex;
    return found;
  }
}
