/** A header of a table or the beginning of a pair: what no array holds on a line of its own. */
const OUTSIDE = /^[ \t]*(?:\[{1,2}[\w.-]+\]{1,2}[ \t]*(?:#.*)?$|[\w.-]+[ \t]*=)/;

/**
 * Finds the array that somebody forgot to close before `offset`, where a parser of TOML gave up, and returns the line on
 * which it opens, from 1. Undefined where the mistake is another one: the line of the mistake belongs into the array.
 */
export function findOpenArray(text: string, offset: number): number | undefined {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const end = text.indexOf("\n", start);
  if (offset < text.trimEnd().length && !OUTSIDE.test(text.slice(start, end === -1 ? undefined : end))) return undefined;
  const opened: number[] = [];
  for (const { 0: token, index } of text.slice(0, start).matchAll(/"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#.*|[[\]]/g)) {
    if (token === "[") opened.push(index);
    if (token === "]") opened.pop();
  }
  const [first] = opened;
  return first === undefined ? undefined : text.slice(0, first).split("\n").length;
}
