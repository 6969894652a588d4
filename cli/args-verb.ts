import type { Complaint } from "../policy/errors.ts";
import { quote } from "../policy/parsed.ts";
import { policyVerbs, type Verb, verbs } from "./args-options.ts";
import type { AgentWord } from "./args-values.ts";
import { parseAgentWord } from "./args-values.ts";
import { findNearest } from "../policy/nearest.ts";

/** The verbs that are written as the first word; the others are an agent, `AGENT login` and `--rebuild`. */
const firstWords: readonly Verb[] = ["shell", "run", "setup", "blocked", "logs", "ssh-init", "doctor", "cleanup"];

/** What help can be asked about: a verb, or all those that begin with `policy`. */
export type Topic = Verb | "policy";

/** Finds the verb. A word that says one goes before `--rebuild`, which then is an option without a meaning. */
export function findVerb(words: readonly string[], rebuild: boolean): Verb {
  const written = findPolicyVerb(words) ?? firstWords.find((verb) => verb === words[0]);
  if (written !== undefined) return written;
  if (words[0] === "login" || words[1] === "login") return "login";
  return rebuild ? "rebuild" : "start";
}

/** Finds what `help WORDS…` asks about; undefined is the whole command line. */
export function findTopic(words: readonly string[], { rebuild, agents, complaints }: { rebuild: boolean; agents: readonly string[]; complaints: Complaint[] }): Topic | undefined {
  const [first] = words;
  if (first === "policy") return findPolicyVerb(words) ?? "policy";
  if (first === undefined) return rebuild ? "rebuild" : undefined;
  if (first === "help") return undefined;
  const written = verbs.find((verb) => verb === first);
  if (written !== undefined) return written;
  readAgent(first, agents, complaints);
  return findVerb(words, rebuild);
}

/** Finds the verb of `policy WORD`; undefined where the word is missing or unknown. */
function findPolicyVerb([first, second]: readonly string[]): Verb | undefined {
  return first === "policy" ? policyVerbs.find((verb) => verb === `policy ${second}`) : undefined;
}

/** Complains about `policy` without a word that says what to do. */
export function refusePolicyAlone([first, second]: readonly string[]): Complaint[] {
  if (first !== "policy" || findPolicyVerb(["policy", second ?? ""]) !== undefined) return [];
  const known = policyVerbs.map((verb) => verb.slice("policy ".length));
  const near = second === undefined ? undefined : findNearest(second, known);
  const what = second === undefined ? "policy needs a word that says what to do" : `policy ${quote(second)} is no command`;
  return [{ what, expected: known.join(", "), fix: near === undefined ? "see agentbox help policy" : `did you mean policy ${near}?` }];
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
  const near = findNearest(word, [...agents, ...firstWords, "policy", "help"]);
  const fix = near === undefined ? "see agentbox --help" : `did you mean ${near}?`;
  return {
    what: `${quote(word)} is neither an agent nor a command`,
    expected: `${agents.join(", ")}, ${firstWords.join(", ")}, policy or help`,
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
