import { type Command, type CommandArgument, forEachChild, parse, type Redirection, type SyntaxNode, type Word, type WordPart } from "unbash";

/** Stands in a word for what only a run would know: a variable, a substitution, an alternative of braces. */
export const DYNAMIC = "${_}";

/** One program with its arguments, as a shell would start it. */
export type SimpleCommand = {
  /** The program first. */
  words: readonly string[];
  /** Variables that are set for it alone. */
  variables: ReadonlyMap<string, string>;
  /** What stands in the script as its standard input. */
  input: string | undefined;
};

/** What a script holds; `files` are the places that it reads from or writes to by redirection. */
export type ScriptContent = { commands: readonly SimpleCommand[]; files: readonly string[] };

/** More is no command line that anybody typed. */
const MAX_SCRIPT = 64 * 1024;
/** Substitutions are parsed when somebody looks into them: thousands in one another would take the stack, and each level reads the rest again. */
const MAX_NESTING = 200;

/** Makes a command of words that no shell has to read. */
export function commandOf(words: readonly string[], variables: ReadonlyMap<string, string> = new Map()): SimpleCommand {
  return { words, variables, input: undefined };
}

/**
 * Lists every simple command of a text in the language of bash, those in pipes, conditions, loops, functions and
 * substitutions included, in the order of the text. Nothing is run or expanded. What is no correct script gives what could
 * be understood of it, and a text over 64 Ki characters nothing.
 */
export function readScript(text: string): ScriptContent {
  const found: { commands: SimpleCommand[]; files: string[] } = { commands: [], files: [] };
  if (text.length > MAX_SCRIPT) return found;
  const open: { node: SyntaxNode; depth: number }[] = [{ node: parse(text), depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth } = next;
    if (node.type === "Command") found.commands.push(readCommand(node));
    if (node.type === "Redirect" && node.target !== undefined) found.files.push(readWord(node.target));
    if (depth < MAX_NESTING) for (const child of listChildren(node).toReversed()) open.push({ node: child, depth: depth + 1 });
  }
  return found;
}

function listChildren(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  forEachChild(node, (child) => void children.push(child));
  return children;
}

function readCommand({ name, args, prefix, redirects }: Command): SimpleCommand {
  const variables = new Map<string, string>();
  for (const part of prefix) {
    if (part.type === "Assignment" && part.value.type === "Word") variables.set(part.name, readWord(part.value));
  }
  return { words: name === undefined ? [] : [readWord(name), ...args.map(readArgument)], variables, input: redirects.map(readInput).findLast((text) => text !== undefined) };
}

/** `export A=b` has an assignment where other commands have words. */
function readArgument(argument: CommandArgument): string {
  if (argument.type === "Word") return readWord(argument);
  return `${argument.name}=${argument.value.type === "Word" ? readWord(argument.value) : DYNAMIC}`;
}

function readInput(redirection: Redirection): string | undefined {
  if (redirection.type === "HereString") return redirection.target === undefined ? undefined : readWord(redirection.target);
  if (redirection.type !== "HereDoc") return undefined;
  const { text, parts } = redirection.body;
  return parts === undefined ? text : readParts(parts);
}

function readWord({ value, parts }: Word): string {
  return parts === undefined ? value : readParts(parts);
}

function readParts(parts: readonly WordPart[]): string {
  return parts.map(readPart).join("");
}

function readPart(part: WordPart): string {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
    // Where no file matches, a shell hands a pattern on as it is: the question mark of a URL.
    case "Glob":
      return part.value;
    case "DoubleQuoted":
    case "LocaleString":
      return readParts(part.parts);
    case "SimpleExpansion":
    case "ParameterExpansion":
    case "CommandExpansion":
    case "ArithmeticExpansion":
    case "ProcessSubstitution":
    case "ExtendedGlob":
    case "BraceExpansion":
      return DYNAMIC;
  }
}
