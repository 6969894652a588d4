import type { Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";
import { type Verb, verbs } from "./args-options.ts";
import type { AgentWord } from "./args-values.ts";
import { parseAgentWord } from "./args-values.ts";
import { findNearest } from "../policy/nearest.ts";

/** The verbs that are written as the first word; the others are an agent, `AGENT login` and `--rebuild`. */
const firstWords: readonly Verb[] = ["shell", "run", "setup", "blocked", "logs", "mcp", "preflight", "proxy", "ssh-init", "doctor", "cleanup"];

/** First words that a second one may follow; most say nothing without it. */
const groups = ["policy", "audit", "confirm", "hook", "proxy"] as const;
export type Group = (typeof groups)[number];

/** What help can be asked about: a verb, or all those that begin with one word. */
export type Topic = Verb | Group;

/** Finds the verb. A word that says one goes before `--rebuild`, which then is an option without a meaning. */
export function findVerb(words: readonly string[], rebuild: boolean): Verb {
  const written = findLongVerb(words) ?? firstWords.find((verb) => verb === words[0]);
  if (written !== undefined) return written;
  if (words[0] === "login" || words[1] === "login") return "login";
  return rebuild ? "rebuild" : "start";
}

/** Finds what `help WORDS…` asks about; undefined is the whole command line. */
export function findTopic(words: readonly string[], { rebuild, agents, complaints }: { rebuild: boolean; agents: readonly string[]; complaints: Complaint[] }): Topic | undefined {
  const [first] = words;
  const long = findLongVerb(words);
  if (long !== undefined) return long;
  if (isGroup(first)) return first;
  if (first === undefined) return rebuild ? "rebuild" : undefined;
  if (first === "help") return undefined;
  const written = verbs.find((verb) => verb === first);
  if (written !== undefined) return written;
  readAgent(first, agents, complaints);
  return findVerb(words, rebuild);
}

/** Finds the verb of two words, such as `policy show`; undefined where the second is missing or unknown. */
function findLongVerb([first, second]: readonly string[]): Verb | undefined {
  return second === undefined ? undefined : verbs.find((verb) => verb === `${first} ${second}`);
}

/** Tells whether a second word may follow a word. */
export function isGroup(word: string | undefined): word is Group {
  return groups.some((group) => group === word);
}

/** Complains about `policy` and its like without a word that says what to do. */
export function refuseGroupAlone(words: readonly string[]): Complaint[] {
  const [group, second] = words;
  if (!isGroup(group) || findLongVerb(words) !== undefined || (second === undefined && verbs.some((verb) => verb === group))) return [];
  const known = verbs.filter((verb) => verb.startsWith(`${group} `)).map((verb) => verb.slice(group.length + 1));
  const near = second === undefined ? undefined : findNearest(second, known);
  const what = second === undefined ? `${group} needs a word that says what to do` : `${group} ${quote(second)} is no command`;
  return [{ what, expected: known.join(", "), fix: near === undefined ? `see agentbox help ${group}` : `did you mean ${group} ${near}?` }];
}

/** Renders how a verb is asked for help, as messages show it. */
export function renderHelpCall(verb: Verb): string {
  return verb === "start" ? "agentbox --help" : `agentbox help ${verb}`;
}

/** Reads the word that shall be an agent, and complains where it is none. */
export function readAgent(word: string | undefined, agents: readonly string[], complaints: Complaint[]): AgentWord | undefined {
  if (word === undefined) return undefined;
  const answer = parseAgentWord(word, agents);
  if (answer.ok) return answer.value;
  complaints.push(agents.includes(word.split("@")[0] ?? "") ? answer.complaint : refuseUnknown(word, agents));
  return undefined;
}

function refuseUnknown(word: string, agents: readonly string[]): Complaint {
  const near = findNearest(word, [...agents, ...firstWords, ...groups, "help"]);
  const fix = near === undefined ? "see agentbox --help" : `did you mean ${near}?`;
  return {
    what: `${quote(word)} is neither an agent nor a command`,
    expected: `${agents.join(", ")}, ${firstWords.join(", ")}, ${groups.join(", ")} or help`,
    fix: word === "rebuild" ? "agentbox --rebuild" : fix,
  };
}

/** Complains about the words after the verb that none of it takes. */
export function refuseStrayWords(words: readonly string[], verb: Verb): Complaint[] {
  const taken = verb === "login" ? 2 : 1;
  return words.slice(taken).map((word) => ({ what: `${quote(word)} is one word too many`, fix: explainStrayWord(word, verb, words[0] ?? "") }));
}

function explainStrayWord(word: string, verb: Verb, first: string): string {
  if (verb === "start") return `arguments of the agent go after --: agentbox ${first} -- ${word}`;
  if (verb === "shell" || verb === "run") return `a command goes after --: agentbox ${verb} -- ${word}`;
  return `leave it out, or see ${renderHelpCall(verb)}`;
}

/** Complains about `login` that stands where the agent belongs. */
export function refuseLoginAlone([first, second]: readonly string[], agents: readonly string[]): Complaint[] {
  if (first !== "login") return [];
  const agent = second !== undefined && agents.includes(second) ? second : agents[0];
  return [{ what: "login comes after the agent that shall be signed in", expected: "agentbox AGENT login", fix: `write agentbox ${agent ?? "AGENT"} login` }];
}
