import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllowlistFile, renderAllowlistFile, type AllowlistFile, type PlacedWord } from "../../../policy/allowlist-file.ts";
import { ConfigError, renderComplaint, type Complaint } from "../../../policy/errors.ts";

function mistakes(text: string, shape?: Parameters<typeof parseAllowlistFile>[2]): readonly Complaint[] {
  try {
    parseAllowlistFile("f.sh", text, shape);
  } catch (error) {
    if (error instanceof ConfigError) return error.complaints;
    throw error;
  }
  return [];
}

function refuseBad(array: string, { text, place }: PlacedWord): Complaint | undefined {
  return text === "bad" ? { what: `bad in ${array}`, place } : undefined;
}

type Values = { arrays: Record<string, readonly string[]>; scalars: Record<string, string> };

function valuesOf({ arrays, scalars }: Pick<AllowlistFile, "arrays" | "scalars">): Values {
  return {
    arrays: Object.fromEntries([...arrays].map(([name, words]) => [name, words.map(({ text }) => text)])),
    scalars: Object.fromEntries([...scalars].map(([name, { text }]) => [name, text])),
  };
}

const accepted: readonly [row: string, text: string, arrays: Record<string, readonly string[]>][] = [
  ["words in double quotes, single quotes and none", `A=( "a.com" 'b.com' c.com )`, { A: ["a.com", "b.com", "c.com"] }],
  ["one word a line, with comments and blank lines", `# head\nA=(\n  "a"  # why\n\n\t# all of it\n  "b"\n)\n`, { A: ["a", "b"] }],
  ["an empty array", "A=()", { A: [] }],
  ["several arrays", "A=(a)\nB=(b)", { A: ["a"], B: ["b"] }],
  ["words right beside the parentheses", `A=("a" "b")`, { A: ["a", "b"] }],
  ["a comment right after the opening parenthesis", "A=(# none\n)", { A: [] }],
  ["a closing parenthesis after the last word", "A=(\na\nb)", { A: ["a", "b"] }],
  ["other quotes inside quotes", `A=("it's" 'say "x"')`, { A: ["it's", 'say "x"'] }],
  ["what bash would expand, in single quotes", "A=('$HOME' '`x`' '\\')", { A: ["$HOME", "`x`", "\\"] }],
  ["wildcards and brackets in quotes", `A=("*.a.com" "[::1]:443" "{a,b}" "~")`, { A: ["*.a.com", "[::1]:443", "{a,b}", "~"] }],
  ["an empty word", `A=("")`, { A: [""] }],
  ["a comment after the array", "A=(a) # done", { A: ["a"] }],
];

describe("parseAllowlistFile", () => {
  test.each(accepted)("reads %s", (_row, text, arrays) => {
    expect(valuesOf(parseAllowlistFile("f.sh", text)).arrays).toEqual(arrays);
  });

  test("reads scalars, quoted and bare", () => {
    expect(valuesOf(parseAllowlistFile("f.sh", `D="2025-07-25"\nE=x # why\nF='a b'`)).scalars).toEqual({ D: "2025-07-25", E: "x", F: "a b" });
  });

  test("tells where each word stands", () => {
    const words = parseAllowlistFile("f.sh", `A=(\n  "a" b\n)`).arrays.get("A");
    expect(words?.map(({ place }) => place)).toEqual([
      { file: "f.sh", line: 2, column: 3 },
      { file: "f.sh", line: 2, column: 7 },
    ]);
  });

  const refusals: readonly [row: string, text: string, line: number, column: number, what: string][] = [
    ["a variable", `A=("$HOME")`, 1, 5, "an expansion in double quotes"],
    ["a bare variable", "A=($HOME)", 1, 4, "an expansion"],
    ["a command substitution", 'A=("$(id)")', 1, 5, "an expansion"],
    ["backticks", 'A=("`id`")', 1, 5, "a command substitution"],
    ["an escape", 'A=("a\\n")', 1, 6, "an escape"],
    ["a history expansion", 'A=("!x")', 1, 5, "a history expansion"],
    ["a bare glob", "A=(*.example.com)", 1, 4, '"*"'],
    ["a bare question mark", "A=(a?b)", 1, 5, '"?"'],
    ["a bare bracket", "A=([::1]:443)", 1, 4, '"["'],
    ["a tilde", "A=(~root)", 1, 4, '"~"'],
    ["braces", "A=({a,b})", 1, 4, '"{"'],
    ["an index", "A=([0]=a)", 1, 4, '"["'],
    ["two quoted parts glued together", `A=("a"'b')`, 1, 7, "glued"],
    ["a bare part glued to a quoted one", `A=(a"b")`, 1, 5, "bare word"],
    ["a comment glued to a word", "A=(a#b)", 1, 5, '"#"'],
    ["$'…'", "A=($'a')", 1, 4, "an expansion"],
    ["an appended array", "A+=(a)", 1, 1, "+="],
    ["one element", "A[0]=a", 1, 1, "one element"],
    ["export", "export A=(a)", 1, 1, "command"],
    ["declare", "declare -a A=(a)", 1, 1, "command"],
    ["a command", "rm -rf /", 1, 1, "neither"],
    ["a command after an array", "A=(a); id", 1, 6, "text after the end"],
    ["a command after an array without a semicolon", "A=(a) id", 1, 7, "text after the end"],
    ["a command after a scalar", "A=b id", 1, 5, "text after the value"],
    ["a comment glued to the end of an array", "A=(a)#b", 1, 6, "text after the end"],
    ["two arrays on one line", "A=(a) B=(b)", 1, 7, "text after the end"],
    ["a space before the equals sign", "A =(a)", 1, 1, "space before ="],
    ["a space before the parenthesis", "A= (a)", 1, 3, "nothing right after A="],
    ["a scalar without a value", "A=", 1, 3, "nothing right after A="],
    ["a ) without an array", ")", 1, 1, "closes no array"],
    ["a lower-case name", "a=(a)", 1, 1, "capitals"],
    ["a line continuation", "A=(a \\\nb)", 1, 6, "an escape"],
    ["a semicolon between words", "A=(a;b)", 1, 5, '";"'],
    ["a redirection", "A=(a >b)", 1, 6, '">"'],
    ["a nested parenthesis", "A=((a))", 1, 4, '"("'],
    ["an unclosed quote", `A=("a\n)`, 1, 4, "not closed"],
    ["an unclosed array", "A=(\na\n", 1, 1, "not closed"],
    ["an array defined twice", "A=(a)\nA=(b)", 2, 1, "defined twice"],
    ["NUL", "A=(a)\n# \0", 2, 3, "character"],
    ["a carriage return inside a line", "A=(a)\n# x\ry", 2, 4, "character"],
    ["a byte order mark", "\ufeffA=(a)", 1, 1, "byte order mark"],
    ["bytes that are not UTF-8", "A=('\ufffd')", 1, 5, "character"],
    ["a bare letter outside ASCII", "A=(bücher.de)", 1, 5, "character"],
  ];
  test.each(refusals)("refuses %s", (_row, text, line, column, what) => {
    const [first] = mistakes(text);
    expect(first?.place).toEqual({ file: "f.sh", line, column });
    expect(first?.what).toContain(what);
    expect([first?.expected, first?.fix]).toEqual([expect.stringMatching(/\w/), expect.stringMatching(/\w/)]);
  });

  test("collects the mistakes of all lines", () => {
    const lines = mistakes(`A=(\n  "$x"\n  ok\n  *\n)\nB+=(\n  y\n)\nfoo\n`).map(({ place }) => place?.line);
    expect(lines).toEqual([2, 4, 6, 9]);
  });

  // One mistake is told once, at its place, however much it makes of what follows unreadable.
  const told: readonly [row: string, text: string, messages: readonly string[]][] = [
    [
      "an array that is not closed before the next one",
      "\nA=(\n  a\n  b\n\nB=(\n  c\n)\n",
      ["f.sh:6:1: A (line 2) is not closed; expected a ) on a line of its own before B; fix: add it after the last word"],
    ],
    ["two arrays that are not closed", "A=(\n  a\nB=(\n  c\n", ["f.sh:3:1: A (line 1) is not closed", "f.sh:3:1: B (line 3) is not closed"]],
    ["a command substitution on a line of its own", "A=(\n  a\n  $(touch x)\n  b\n  c\n)\nB=(\n  d\n)\n", ["f.sh:3:3: A: an expansion in a bare word"]],
    ["a command substitution before an array that is not closed", "A=(\n  $(touch x)\n  b\nB=(\n  d\n)\n", ["f.sh:2:3: A: an expansion in a bare word"]],
    ["a mistake in an array of one line", 'A=("$x")\nB=(b)\nC="c"\n', ["f.sh:1:5: A: an expansion in double quotes"]],
    ["a mistake in each of two arrays of one line", 'A=("$x")\nB=(*)\n', ["f.sh:1:5: A: an expansion in double quotes", 'f.sh:2:4: B: the character "*" in a bare word']],
    ["a mistake after a command substitution", "A=(\n  $(touch x)\n  *\n)\n", ["f.sh:2:3: A: an expansion", 'f.sh:3:3: A: the character "*"']],
    ["words without an array", '"a"\n"b"\n"c"\n)\nB=(\n  d\n)\n', ['f.sh:1:1: "\\"a\\"" is neither an array nor a comment']],
    ["a space before the equals sign of a long array", "A = (\n  a\n  b\n)\nB=(b)\n", ["f.sh:1:1: a space before ="]],
    ["a space before the parenthesis of a long array", "A= (\n  a\n  b\n)\nB=(b)\n", ["f.sh:1:3: nothing right after A="]],
    ["a quote that is not closed", 'A=(\n  "a\n  "b"\n)\n', ["f.sh:2:3: A: a quote that is not closed on its line"]],
    ["Windows line ends", "A=(\r\n  a\r\n)\r\n", ["f.sh:1: the file has Windows line ends (CR LF); expected UTF-8 text with Unix line ends; fix: save it with LF line ends, for example by dos2unix"]],
    ["Windows line ends beside another mistake", "A=(\r\n  *\r\n)\r\n", ["f.sh:1: the file has Windows line ends", 'f.sh:2:3: A: the character "*"']],
    ["a semicolon after a word", "A=(\n  a.com;\n  b.com\n)\n", ['f.sh:2:8: A: a ";" between words; expected words separated by spaces or line ends; fix: remove the ;']],
    ["a semicolon after a quoted word", 'A=(\n  "a.com";\n)\n', ['f.sh:2:10: A: a ";" between words; expected words separated by spaces or line ends; fix: remove the ;']],
    ["a semicolon that stands alone", "A=(\n  a.com ;\n)\n", ['f.sh:2:9: A: a ";" between words; expected words separated by spaces or line ends; fix: remove the ;']],
    ["a semicolon between two words", "A=(a;b)\n", ['f.sh:1:5: A: a ";" between words; expected words separated by spaces or line ends; fix: put a space in place of the ;']],
    ["a comma after a quoted word", 'A=("a", "b")\n', ['f.sh:1:7: A: a "," between words; expected words separated by spaces or line ends; fix: remove the ,']],
    ["a semicolon after an array", "A=(a); # done\n", ["f.sh:1:6: text after the end of A; expected nothing but a comment; fix: remove the ;"]],
    ["a comment glued to the end of an array", "A=(a)#b\n", ["f.sh:1:6: text after the end of A; expected nothing but a comment; fix: put a space before it"]],
  ];
  test.each(told)("tells once of %s", (_row, text, messages) => {
    const found = mistakes(text).map(renderComplaint);
    expect(found.map((line, index) => line.slice(0, messages[index]?.length))).toEqual(messages);
  });

  test("tells of unknown names and wrong values beside mistakes of form, in the order of the file", () => {
    const found = mistakes("A=(\n  bad\n  *\n  bad\n)\nX=(a)\n", { arrays: ["A", "B"], scalars: [], judge: refuseBad }).map(({ what, place }) => [place?.line, what]);
    expect(found).toEqual([[2, "bad in A"], [3, 'A: the character "*" in a bare word'], [4, "bad in A"], [6, "X is not known here"]]);
  });

  test("refuses names that the file must not or must define", () => {
    const found = mistakes("ALOWED=(a)", { arrays: ["ALLOWED"], scalars: ["DATE"] }).map(({ what }) => what);
    expect(found).toEqual(["ALOWED is not known here", "ALLOWED is missing", "DATE is missing"]);
  });

  test("parses what it renders to the same values", () => {
    const name = fc.stringMatching(/^[A-Z][A-Z0-9_]{0,5}$/);
    // One word never holds both a single quote and something that only single quotes can hold.
    const word = fc.oneof(fc.stringMatching(/^[ -~äöü]{0,12}$/).filter((text) => !text.includes("'")), fc.stringMatching(/^[a-z' .*]{0,12}$/));
    const file = fc.tuple(fc.dictionary(name, fc.array(word, { maxLength: 5 })), fc.dictionary(name, word));
    fc.assert(
      fc.property(file, ([arrays, scalars]) => {
        fc.pre(Object.keys(arrays).every((key) => !(key in scalars)));
        const place = { file: "x" };
        const model = {
          arrays: new Map(Object.entries(arrays).map(([key, words]) => [key, words.map((text) => ({ text, place }))])),
          scalars: new Map(Object.entries(scalars).map(([key, text]) => [key, { text, place }])),
        };
        expect(valuesOf(parseAllowlistFile("f.sh", renderAllowlistFile(model)))).toEqual(valuesOf(model));
      }),
    );
  });
});

describe("bash reads the same values", () => {
  let scratch = "";
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), "allowlist-"));
    // Names that a glob could catch: bash must not find them.
    for (const file of ["a", "b", "ab", "a.com", "x"]) writeFileSync(join(scratch, file), "");
  });
  afterAll(() => rmSync(scratch, { recursive: true }));

  test("in every accepted example", () => {
    for (const [, text] of accepted) expect(readWithBash(text, scratch)).toEqual(valuesOf(parseAllowlistFile("f.sh", text)));
  });

  test("in every file that this parser accepts", () => {
    const piece = fc.constantFrom("a", "b.com", '"a b"', "'b'", '"*"', "'$x'", '"ü"', "*", "$x", "~", "{a,b}", "#c", "# c", "(", ")", ";", "\\", "'", '"', "a@b", "a%b", "=", ",", "!", "&", "[a]", "?");
    const gap = fc.constantFrom(" ", " ", "\n", "\t", "");
    const body = fc.array(fc.tuple(piece, gap), { maxLength: 6 }).map((list) => list.flat().join(""));
    const files = fc.tuple(fc.constantFrom("A=(", "A=( ", "A=", "B=x\nA=(\n"), body, fc.constantFrom(")", "\n)", ") # c", "", "\n)\nC=(c)")).map((parts) => parts.join(""));
    let compared = 0;
    for (const text of fc.sample(files, { numRuns: 20_000, seed: 7 })) {
      if (mistakes(text).length > 0) continue;
      compared += 1;
      if (compared > 150) break;
      expect({ text, ...readWithBash(text, scratch) }).toEqual({ text, ...valuesOf(parseAllowlistFile("f.sh", text)) });
    }
    expect(compared).toBeGreaterThan(100);
  });
});

/** Sources the text with a real bash and reads all upper-case variables back, NUL-separated. */
function readWithBash(text: string, cwd: string): Values {
  const file = join(cwd, "file.sh");
  writeFileSync(file, text);
  const script = `source ./file.sh || exit 9
    for name in A B C D E F; do
      if [[ $(declare -p "$name" 2>/dev/null) == "declare -a"* ]]; then
        declare -n list=$name; printf 'a%s\\0%s\\0' "$name" "\${#list[@]}"; (( \${#list[@]} )) && printf '%s\\0' "\${list[@]}"
      elif [[ -v $name ]]; then printf 's%s\\0%s\\0' "$name" "\${!name}"; fi
    done; true`;
  const output = execFileSync("bash", ["--norc", "--noprofile", "-c", script], { cwd, encoding: "utf8", env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8" } });
  rmSync(file);
  const values: Values = { arrays: {}, scalars: {} };
  const fields = output.split("\0");
  for (let at = 0; at < fields.length - 1; ) {
    const head = fields[at] ?? "";
    const field = fields[at + 1] ?? "";
    if (head.startsWith("s")) values.scalars[head.slice(1)] = field;
    else values.arrays[head.slice(1)] = fields.slice(at + 2, at + 2 + Number(field));
    at += 2 + (head.startsWith("s") ? 0 : Number(field));
  }
  return values;
}
