import { parsed, quote, refused, type Parsed } from "./parsed.ts";
import { canonicalName } from "./sandbox-name.ts";

/** A piece of one component: text as it is, any one character, or any characters. */
export type GlobToken = { text: string } | "any" | "star";

/** One component of a pattern: a name, a name with wildcards, or any number of components. */
export type PatternPart = { kind: "name"; name: string } | { kind: "glob"; tokens: readonly GlobToken[] } | { kind: "deep" };

/** A pattern of paths; an absolute one is compared with the whole path, the others with the path below the grant's root. */
export type PathPattern = { absolute: boolean; parts: readonly PatternPart[] };

const MAX_LENGTH = 4096;
const EXPECTED = "a path such as src/**/*.ts or /etc/hosts, with *, ? and **";

/**
 * Parses a pattern of paths. `*` is any characters of one component, `?` one of them, `**` any number of
 * components, none included: `src/**` is `src` and all below it. Names that begin with a dot are names like
 * others. A backslash takes the meaning of the next character away. Brackets and braces are refused unless they
 * are escaped, since a rule that silently means another thing than its writer protects nothing.
 */
export function parsePathPattern(text: string): Parsed<PathPattern> {
  const word = `the pattern ${quote(text)}`;
  if (text === "") return refused("the pattern is empty", EXPECTED, 'write "**" for everything');
  if (text.length > MAX_LENGTH) return refused(`${word} has more than ${MAX_LENGTH} characters`, EXPECTED);
  if (/\p{Cc}/u.test(text) || !text.isWellFormed()) return refused(`${word} holds a control character, or half of one`, EXPECTED);
  if (text === "~" || text.startsWith("~/")) return refused(`${word} begins with ~`, EXPECTED, "write the whole path of the home directory");
  if (text.startsWith("!")) return refused(`${word} begins with !`, EXPECTED, 'patterns cannot be turned round: write a rule for the exception in front of this one, or \\\\! for the character');
  const absolute = text.startsWith("/");
  const words = text.slice(absolute ? 1 : 0).split("/");
  if (absolute && text === "/") return refused(`${word} is the whole disk's root alone`, EXPECTED, 'write "/**"');
  if (words.at(-1) === "") return refused(`${word} ends with a slash`, EXPECTED, `write ${quote(`${text}**`)}`);
  const parts: PatternPart[] = [];
  for (const part of words) {
    const answer = parsePart(part, word);
    if (!answer.ok) return answer;
    // `**/**` is `**`.
    if (answer.value.kind !== "deep" || parts.at(-1)?.kind !== "deep") parts.push(answer.value);
  }
  return parsed({ absolute, parts });
}

function parsePart(part: string, word: string): Parsed<PatternPart> {
  if (part === "") return refused(`${word} has two slashes in a row`, EXPECTED, "take one of them out");
  if (part === "." || part === "..") return refused(`${word} holds ${quote(part)}`, EXPECTED, "paths are compared when they are resolved: write where it leads");
  if (part === "**") return parsed({ kind: "deep" });
  const tokens: GlobToken[] = [];
  let name = "";
  for (let rest = part; rest !== ""; ) {
    const [, escaped, plain = ""] = /^(?:\\(.)|(\\|[^]))/u.exec(rest) ?? [];
    const char = escaped ?? plain;
    rest = rest.slice(char.length + (escaped === undefined ? 0 : 1));
    if (escaped !== undefined && !/[*?[\]{}!\\]/.test(escaped)) return refused(`${word} has a backslash before ${quote(escaped)}`, EXPECTED, "a backslash stands before * ? [ ] { } ! and itself only");
    if (escaped === undefined && /[[\]{}]/.test(char)) return refused(`${word} holds ${quote(char)}`, EXPECTED, "write one rule for each name, or a backslash before the character itself");
    if (escaped === undefined && char === "\\") return refused(`${word} ends a name with a backslash`, EXPECTED, "a backslash stands before * ? [ ] { } ! and itself only");
    if (escaped !== undefined || (char !== "*" && char !== "?")) {
      name += char;
      continue;
    }
    if (char === "*" && name === "" && tokens.at(-1) === "star") return refused(`${word} has ** beside other characters`, EXPECTED, "** stands between slashes alone; inside a name * is enough");
    if (name !== "") tokens.push({ text: canonicalName(name) });
    tokens.push(char === "*" ? "star" : "any");
    name = "";
  }
  if (tokens.length === 0) return parsed({ kind: "name", name: canonicalName(name) });
  if (name !== "") tokens.push({ text: canonicalName(name) });
  return parsed({ kind: "glob", tokens });
}
