import type { AST } from "toml-eslint-parser";

/** A key or an index at each step from the root. */
export type ConfigPath = readonly (string | number)[];

/** Offsets into the text, the end not included. */
export type Span = { start: number; end: number };

/** Tables in arrays in tables; the schema needs four. */
export const MAX_DEPTH = 16;

/** Collects the spans of a tree by path. A table's own span is its header's; later parts of it do not move it. */
export class SpanIndex {
  private readonly keys = new Map<string, Span>();
  private readonly values = new Map<string, Span>();

  constructor(tree: AST.TOMLProgram) {
    for (const item of tree.body[0].body) this.addItem(item, []);
  }

  /** Where the key of a path stands; undefined for one that is not written. */
  keySpan(path: ConfigPath): Span | undefined {
    return this.keys.get(JSON.stringify(path));
  }

  /** Where the value of a path stands; undefined for one that is not written, and for a table of its own. */
  valueSpan(path: ConfigPath): Span | undefined {
    return this.values.get(JSON.stringify(path));
  }

  /** The span of the nearest thing above a path, or of what it names itself. */
  nearestSpan(path: ConfigPath): Span {
    for (let length = path.length; length > 0; length -= 1) {
      const part = path.slice(0, length);
      const span = this.valueSpan(part) ?? this.keySpan(part);
      if (span !== undefined) return span;
    }
    return { start: 0, end: 0 };
  }

  private addItem(item: AST.TOMLTable | AST.TOMLKeyValue, base: ConfigPath): void {
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
