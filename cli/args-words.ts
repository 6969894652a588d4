import type { Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";
import { findOption, listOptions, type OptionSpec } from "./args-options.ts";
import { findNearest } from "../policy/nearest.ts";

/** One option as it was typed; `value` is undefined for a switch. */
export type TypedOption = { spec: OptionSpec; value: string | undefined };

/** A command line taken apart. `tail` is what follows `--`, undefined when there is none. */
export type Words = {
  options: TypedOption[];
  words: string[];
  tail: string[] | undefined;
  complaints: Complaint[];
};

/** Takes a command line apart into options and words, and collects every mistake of form. */
export function splitWords(argv: readonly string[]): Words {
  const end = argv.indexOf("--");
  const head = end === -1 ? argv : argv.slice(0, end);
  const result: Words = { options: [], words: [], tail: end === -1 ? undefined : argv.slice(end + 1), complaints: [] };
  let index = 0;
  while (index < head.length) index += takeWord(head, index, result);
  return result;
}

/** Takes what starts at `index` and returns how many words it was. */
function takeWord(head: readonly string[], index: number, result: Words): number {
  const word = head[index] ?? "";
  if (!word.startsWith("-") || word === "-") {
    result.words.push(word);
    return 1;
  }
  const { typed, attached } = splitOption(word);
  const spec = findOption(typed, result.words);
  if (spec === undefined) return takeUnknown(typed, head[index + 1], result);
  if (spec.value === undefined) {
    if (attached === undefined) result.options.push({ spec, value: undefined });
    else result.complaints.push({ what: `${typed} takes no value, but ${quote(attached)} was given`, fix: `write ${typed}` });
    return 1;
  }
  const value = attached ?? head[index + 1];
  // A value that looks like an option is a forgotten value; `--name=-x` says that it is meant.
  if (value === undefined || (attached === undefined && value.startsWith("-"))) {
    result.complaints.push({ what: `${typed} needs a value`, expected: `${typed} ${spec.value}` });
    return 1;
  }
  result.options.push({ spec, value });
  return attached === undefined ? 2 : 1;
}

/** `--name=value` and `-pVALUE` carry their value with them. */
function splitOption(word: string): { typed: string; attached: string | undefined } {
  if (!word.startsWith("--")) return { typed: word.slice(0, 2), attached: word.length > 2 ? word.slice(2) : undefined };
  const equals = word.indexOf("=");
  return equals === -1 ? { typed: word, attached: undefined } : { typed: word.slice(0, equals), attached: word.slice(equals + 1) };
}

/** Where the option that was meant takes a value, the next word is that value and no mistake of its own. */
function takeUnknown(typed: string, next: string | undefined, { complaints, words }: Words): number {
  const near = typed.startsWith("--") ? findNearest(typed.slice(2), listOptions(words).map(({ name }) => name)) : undefined;
  complaints.push({
    what: `there is no option ${quote(typed)}`,
    fix: near === undefined ? "see agentbox --help; options of the agent go after --" : `did you mean --${near}? Options of the agent go after --`,
  });
  const takesValue = near !== undefined && findOption(`--${near}`)?.value !== undefined;
  return takesValue && next !== undefined && !next.startsWith("-") ? 2 : 1;
}
