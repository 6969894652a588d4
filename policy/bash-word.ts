/** One word as bash reads it, with the column where it begins (from 1), or what is wrong with it. */
export type WordScan =
  | { ok: true; text: string; end: number }
  | { ok: false; what: string; expected: string; fix: string; at: number };

// Characters that bash never expands, globs or splits at, wherever they stand in a word.
const BARE = /[A-Za-z0-9._:/,@%-]*/y;
const EXPECTED_WORD = 'a plain word: "in double quotes", \'in single quotes\', or bare letters, digits and . _ : / , @ % -';

// A comma inside a bare word is part of it (two ports); glued to a quote it can only be meant as a separator.
const SEPARATORS: ReadonlySet<string> = new Set([";", ","]);

const EXPANSIONS: Readonly<Record<string, string>> = {
  $: "an expansion",
  "`": "a command substitution",
  "\\": "an escape",
  "!": "a history expansion",
};

/**
 * Reads one word of a line. The word is bare, or quoted as a whole: what bash would expand, glob,
 * split or glue together is refused, so that this parser and bash cannot disagree about the value.
 */
export function scanWord(line: string, start: number): WordScan {
  const first = line[start];
  if (first === '"' || first === "'") return scanQuoted(line, start, first);
  BARE.lastIndex = start;
  const text = BARE.exec(line)?.[0] ?? "";
  const end = start + text.length;
  if (text !== "" && isDelimiter(line[end])) return { ok: true, text, end };
  const char = line[end] ?? "";
  if (SEPARATORS.has(char)) return refuseSeparator(line, end);
  const name = EXPANSIONS[char] ?? `the character ${JSON.stringify(char)}`;
  const fix = char in EXPANSIONS || "'\"".includes(char) ? "write the value out, and quote the word as a whole" : "quote the word as a whole";
  return { ok: false, what: `${name} in a bare word`, expected: EXPECTED_WORD, fix, at: end };
}

/** Tells whether a word may end before this character: blank, closing parenthesis, end of line. */
export function isDelimiter(char: string | undefined): boolean {
  return char === undefined || char === " " || char === "\t" || char === ")";
}

/** Writes a word so that `scanWord` and bash read it back. Words that came from `scanWord` always can be written. */
export function renderWord(text: string): string {
  return /[$`\\!"]/.test(text) ? `'${text}'` : `"${text}"`;
}

/** Words of a list are separated by blanks alone; quoting would only make the sign a part of the word. */
function refuseSeparator(line: string, at: number): WordScan {
  const sign = line[at] ?? "";
  const fix = isDelimiter(line[at + 1]) ? `remove the ${sign}` : `put a space in place of the ${sign}`;
  return { ok: false, what: `a ${JSON.stringify(sign)} between words`, expected: "words separated by spaces or line ends", fix, at };
}

function scanQuoted(line: string, start: number, mark: string): WordScan {
  const close = line.indexOf(mark, start + 1);
  if (close < 0) {
    return { ok: false, what: "a quote that is not closed on its line", expected: EXPECTED_WORD, fix: `add ${mark} at the end of the word`, at: start };
  }
  const text = line.slice(start + 1, close);
  const special = mark === '"' ? /[$`\\!]/.exec(text) : null;
  if (special !== null) {
    const name = EXPANSIONS[special[0]] ?? "an expansion";
    return { ok: false, what: `${name} in double quotes`, expected: EXPECTED_WORD, fix: "write the value out", at: start + 1 + special.index };
  }
  if (SEPARATORS.has(line[close + 1] ?? "")) return refuseSeparator(line, close + 1);
  if (!isDelimiter(line[close + 1])) {
    return { ok: false, what: "a word glued to a quoted part", expected: EXPECTED_WORD, fix: "quote the word as a whole, or put a space between two words", at: close + 1 };
  }
  return { ok: true, text, end: close + 1 };
}
