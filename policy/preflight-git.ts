import { listNames, readOptions, valuesOf } from "./command-options.ts";
import { type Need, SSH_AGENT } from "./preflight-need.ts";
import { readRemote, readUrl } from "./preflight-place.ts";

const GLOBAL_VALUED = listNames("-C -c --git-dir --work-tree --namespace --config-env --super-prefix");

/** A subcommand that connects: its options with values, and which of its operands may name a repository. */
type Subcommand = { valued: string; named: (operands: readonly string[]) => readonly string[] };

const first = (operands: readonly string[]): readonly string[] => operands.slice(0, 1);
const after = (word: string) => (operands: readonly string[]): readonly string[] => (operands[0] === word ? operands.slice(1) : []);

const FETCH_VALUED = "-j -o -s -X --deepen --depth --filter --jobs --negotiation-tip --refmap --server-option --shallow-exclude --shallow-since --strategy --strategy-option --upload-pack";
const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  clone: { valued: "-b -c -j -o -u --branch --bundle-uri --config --depth --filter --jobs --origin --reference --reference-if-able --revision --separate-git-dir --server-option --shallow-exclude --shallow-since --template --upload-pack", named: first },
  fetch: { valued: FETCH_VALUED, named: first },
  pull: { valued: FETCH_VALUED, named: first },
  push: { valued: "-o --exec --push-option --receive-pack --repo", named: first },
  "ls-remote": { valued: "-o --server-option --sort --upload-pack", named: first },
  submodule: { valued: "-b --branch --depth --name --reference --reference-if-able", named: after("add") },
  subtree: { valued: "-P -b -m --annotate --branch --message --onto --prefix", named: (operands) => (operands[0] === "split" ? [] : operands.slice(1)) },
  svn: { valued: "-r -T -b -t --branches --revision --stdlayout --tags --trunk", named: after("clone") },
};

const REPOSITORY = listNames("--repo --bundle-uri");

/** Finds where git connects to: the repository that its words name. What a remote's name leads to stands in a file and is not read. */
export function findGitNeeds(words: readonly string[], variables: ReadonlyMap<string, string>): Need[] {
  const [name = "", ...rest] = readOptions(words, { valued: GLOBAL_VALUED, stops: true }).operands;
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined;
  const named = subcommand === undefined ? listSpecial(name, rest) : listRepositories(subcommand, rest);
  return named.flatMap((word) => findRepository("git", word, variables));
}

function listRepositories({ valued, named }: Subcommand, rest: readonly string[]): readonly string[] {
  const reading = readOptions(rest, { valued: listNames(valued) });
  return [...valuesOf(reading, REPOSITORY), ...named(reading.operands)];
}

/** `archive` asks another repository only by an option, `remote add` only with -f. */
function listSpecial(name: string, rest: readonly string[]): readonly string[] {
  if (name === "archive") return valuesOf(readOptions(rest, { valued: listNames("-o --format --output --prefix --remote --exec") }), listNames("--remote"));
  if (name !== "remote" || rest[0] !== "add") return [];
  const { options, operands } = readOptions(rest.slice(1), { valued: listNames("-t -m") });
  return options.some((option) => option.name === "-f" || option.name === "--fetch") ? operands.slice(1, 2) : [];
}

/** Finds what a repository needs that is written as a URL or as `user@host:path`. */
export function findRepository(program: string, word: string, variables: ReadonlyMap<string, string>): Need[] {
  const url = readUrl(word);
  if (url !== undefined) return [{ kind: "host", program, form: "url", ...url }, ...(/(?:^|[@ +])ssh:\/\//i.test(word) ? needAgent(program, variables) : [])];
  if (/:\/\//.test(word)) return [];
  const remote = readRemote(word);
  return remote === undefined ? [] : [{ kind: "host", program, form: "remote", ...remote }, ...needAgent(program, variables)];
}

/** A command for ssh of one's own may name a key. */
function needAgent(program: string, variables: ReadonlyMap<string, string>): Need[] {
  return variables.has("GIT_SSH_COMMAND") ? [] : [{ kind: "socket", program, socket: SSH_AGENT, sure: false }];
}
