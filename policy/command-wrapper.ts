import { commandOf, DYNAMIC, type SimpleCommand } from "./command-line.ts";
import { hasOption, listNames, readOptions, valuesOf } from "./command-options.ts";

/** What a program starts that only starts others: commands of its own words, and scripts for a shell. */
export type Wrapped = { commands: readonly SimpleCommand[]; scripts: readonly string[] };

/** A program that runs the rest of its words. `operands` are its own and come before. */
type Wrapper = { names: string; valued: string; operands?: number; assignments?: boolean };

const WRAPPERS: readonly Wrapper[] = [
  { names: "sudo doas", valued: "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --close-from --role --type --command-timeout --other-user --chdir --chroot", assignments: true },
  { names: "env cross-env", valued: "-u -C -S --unset --chdir --split-string", assignments: true },
  { names: "timeout gtimeout", valued: "-k -s --kill-after --signal", operands: 1 },
  { names: "nice", valued: "-n --adjustment" },
  { names: "ionice", valued: "-c -n --class --classdata" },
  { names: "stdbuf", valued: "-i -o -e --input --output --error" },
  { names: "time gtime", valued: "-f -o --format --output" },
  { names: "exec", valued: "-a" },
  { names: "command builtin nohup setsid unbuffer busybox toybox", valued: "" },
  { names: "taskset", valued: "", operands: 1 },
  { names: "flock", valued: "-w -E --timeout --conflict-exit-code", operands: 1 },
  { names: "strace ltrace", valued: "-a -b -e -E -I -o -O -p -P -s -S -u -X" },
  { names: "xargs gxargs", valued: "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-chars" },
];

const SHELLS = listNames("sh bash dash zsh ksh ash");
const SHELL_VALUED = listNames("-o -O --rcfile --init-file");
const WATCH_VALUED = listNames("-n --interval");
const SPLIT = listNames("-S --split-string");
const REPLACE = listNames("-I");
const ASKS_ONLY = listNames("-v -V");
const ASSIGNMENT = /^(?<name>[A-Za-z_][A-Za-z0-9_]*)=(?<value>[^]*)$/;

/** Takes a program off that only starts others: `sudo`, `env`, `timeout`, `xargs`, `sh -c` and their like. Undefined where it is none of them. */
export function unwrapCommand(command: SimpleCommand): Wrapped | undefined {
  const [program = "", ...rest] = command.words;
  const name = nameOf(program);
  if (SHELLS.has(name)) return { commands: [], scripts: listScripts(rest, command.input) };
  if (name === "eval") return { commands: [], scripts: [rest.join(" ")] };
  if (name === "watch") return { commands: [], scripts: [readOptions(rest, { valued: WATCH_VALUED, stops: true }).operands.join(" ")] };
  if (name === "find") return { commands: listExecuted(rest).map((words) => commandOf(words)), scripts: [] };
  if (name === "agentbox" && (rest[0] === "run" || rest[0] === "shell")) return one(rest.includes("--") ? rest.slice(rest.indexOf("--") + 1) : [], command);
  const wrapper = WRAPPERS.find(({ names }) => names.split(" ").includes(name));
  return wrapper === undefined ? undefined : unwrap(wrapper, rest, command);
}

/** The name of a program without the directory that it lies in. */
export function nameOf(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}

function unwrap({ valued, operands = 0, assignments = false }: Wrapper, rest: readonly string[], command: SimpleCommand): Wrapped {
  const reading = readOptions(rest, { valued: listNames(valued), stops: true });
  // `command -v curl` says where it lies.
  if (command.words[0] === "command" && hasOption(reading, ASKS_ONLY)) return NOTHING;
  const split = valuesOf(reading, SPLIT);
  if (assignments && split.length > 0) return { commands: [], scripts: [[...split, ...reading.operands].join(" ")] };
  const variables = new Map(command.variables);
  let words = reading.operands.slice(operands);
  for (let set = assignments ? ASSIGNMENT.exec(words[0] ?? "") : null; set !== null; set = ASSIGNMENT.exec(words[0] ?? "")) {
    variables.set(set.groups?.["name"] ?? "", set.groups?.["value"] ?? "");
    words = words.slice(1);
  }
  // What xargs puts in place of this word is known when it runs.
  const replaced = valuesOf(reading, REPLACE)[0];
  return one(replaced === undefined || replaced === "" ? words : words.map((word) => word.replaceAll(replaced, () => DYNAMIC)), { ...command, variables });
}

const NOTHING: Wrapped = { commands: [], scripts: [] };

function one(words: readonly string[], { variables, input }: SimpleCommand): Wrapped {
  return words.length === 0 ? NOTHING : { commands: [{ words, variables, input }], scripts: [] };
}

/** The script of `-c`, which may stand in a bundle of letters; without a file to run, what the shell reads from its input. */
function listScripts(rest: readonly string[], input: string | undefined): string[] {
  const { options, operands } = readOptions(rest.map((word) => (/^\+[A-Za-z]/.test(word) ? `-${word.slice(1)}` : word)), { valued: SHELL_VALUED, stops: true });
  const [first] = operands;
  if (options.some(({ name }) => name === "-c")) return first === undefined ? [] : [first];
  const readsInput = first === undefined || options.some(({ name }) => name === "-s");
  return readsInput && input !== undefined ? [input] : [];
}

/** The words between `-exec` or its like and the mark that ends them. */
function listExecuted(rest: readonly string[]): string[][] {
  const found: string[][] = [];
  let words: string[] | undefined;
  for (const word of rest) {
    const ends = word === ";" || (word === "+" && words?.at(-1) === "{}");
    if (words === undefined || ends) words = undefined;
    else words.push(word);
    if (words === undefined && /^-(?:exec|execdir|ok|okdir)$/.test(word)) {
      words = [];
      found.push(words);
    }
  }
  return found.filter((each) => each.length > 0);
}
