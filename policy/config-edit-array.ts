import type { AST } from "toml-eslint-parser";
import { indentOf, lineEndAt, type Edit, type EditableText } from "./config-edit-tree.ts";

/** Makes the edits that append a string to an array, in the way in which the array is written. */
export function appendElement(editable: EditableText, array: AST.TOMLArray, word: string): Edit[] {
  const { text, tree, lineEnd } = editable;
  const last = array.elements.at(-1);
  const quoted = quoteLike(last, word);
  if (last === undefined) return [fillEmpty(editable, array, quoted)];
  const comma = findComma(tree, last.range[1], array.range[1]);
  const ownLine = text.slice(text.lastIndexOf("\n", last.range[0] - 1) + 1, last.range[0]).trim() === "" && array.loc.start.line < last.loc.start.line;
  const at = comma?.range[1] ?? last.range[1];
  if (!ownLine) return [insertAt(at, comma === undefined ? `, ${quoted}` : ` ${quoted},`)];
  const line = `${lineEnd}${indentOf(text, last)}${quoted}`;
  const end = lineEndAt(text, at);
  // Behind the last element there may be a comment, which stays with it.
  const free = /^[ \t]*(?:#.*)?$/.test(text.slice(at, end));
  if (comma !== undefined) return [insertAt(free ? end : at, `${line},`)];
  return free ? [insertAt(at, ","), insertAt(end, line)] : [insertAt(at, `,${line}`)];
}

/** Makes the edits that take one element out; comments stay, a line that holds nothing else goes with it. */
export function removeElement({ text, tree }: EditableText, array: AST.TOMLArray, element: AST.TOMLContentNode): Edit[] {
  const index = array.elements.indexOf(element);
  const following = array.elements[index + 1]?.range[0] ?? array.range[1];
  const comma = findComma(tree, element.range[1], following);
  const end = comma?.range[1] ?? element.range[1];
  const lineStart = text.lastIndexOf("\n", element.range[0] - 1) + 1;
  const alone = text.slice(lineStart, element.range[0]).trim() === "" && lineStart > array.range[0];
  const lineRest = text.slice(end, lineEndAt(text, end));
  const between = text.slice(element.range[1], comma?.range[0] ?? element.range[1]);
  // A comment between element and comma: the two are taken out apart.
  if (comma !== undefined && between.trim() !== "") return [{ start: element.range[0], end: element.range[1], text: "" }, { start: comma.range[0], end: comma.range[1], text: "" }];
  if (alone && lineRest.trim() === "" && text.includes("\n", end)) return [{ start: lineStart, end: text.indexOf("\n", end) + 1, text: "" }];
  if (alone) return [{ start: element.range[0], end: end + (lineRest.length - lineRest.trimStart().length), text: "" }];
  if (comma !== undefined) return [{ start: element.range[0], end: end + (/^[ \t]*/.exec(lineRest)?.[0].length ?? 0), text: "" }];
  const before = index === 0 ? undefined : findComma(tree, array.elements[index - 1]?.range[1] ?? 0, element.range[0]);
  const joined = before !== undefined && text.slice(before.range[1], element.range[0]).trim() === "" && !text.slice(before.range[1], element.range[0]).includes("\n");
  return [{ start: joined ? before.range[0] : element.range[0], end, text: "" }];
}

function fillEmpty({ text, lineEnd }: EditableText, array: AST.TOMLArray, quoted: string): Edit {
  const [start, end] = array.range;
  const inner = text.slice(start + 1, end - 1);
  if (!inner.includes("\n")) return insertAt(start + 1, quoted);
  const closing = text.lastIndexOf("\n", end - 1);
  const at = text[closing - 1] === "\r" ? closing - 1 : closing;
  const indent = indentOf(text, { range: [end - 1, end] });
  return insertAt(at, `${lineEnd}${indent}  ${quoted},`);
}

/** The comma between two offsets, comments and strings not mistaken for one. */
function findComma(tree: AST.TOMLProgram, start: number, end: number): AST.Token | undefined {
  return tree.tokens.find(({ type, value, range }) => type === "Punctuator" && value === "," && range[0] >= start && range[1] <= end);
}

function quoteLike(sibling: AST.TOMLContentNode | undefined, word: string): string {
  const literal = sibling?.type === "TOMLValue" && sibling.kind === "string" && sibling.style === "literal";
  // oxlint-disable-next-line no-control-regex -- the control characters are meant
  return literal && !/['\u0000-\u001f\u007f]/.test(word) ? `'${word}'` : JSON.stringify(word);
}

function insertAt(offset: number, text: string): Edit {
  return { start: offset, end: offset, text };
}
