import { type Complaint, UsageError } from "../policy/errors.ts";
import type { Parsed } from "../policy/parsed.ts";
import { quote } from "../policy/parsed.ts";
import { boxVerbs, type OptionSpec, type Verb, verbs } from "./args-options.ts";
import { type AgentWord, parseAgentWord, parseBase, parseEngineKind, parseHostAddress, parseNetworkName, parsePackage, parsePortMapping, parseResolver, parseVariable } from "./args-values.ts";
import { splitWords, type TypedOption, type Words } from "./args-words.ts";
import type { HostAddress, PortMapping } from "./engine/container-plan.ts";
import type { EngineKind } from "./engine/engine.ts";
import { findNearest } from "./nearest.ts";
import { checkSwitch } from "./session/firewall-switch.ts";

/** What the image shall hold. Undefined leaves it as remembered; an empty list or null takes it away. */
export type ImageWish = {
  agents: AgentWord[] | undefined;
  packages: string[] | undefined;
  base: string | undefined;
  caFile: string | null | undefined;
};

export type Options = {
  ports: PortMapping[];
  addDirs: string[];
  yesSecrets: boolean;
  env: string[];
  ignoreDotEnv: boolean;
  dryRun: boolean;
  fullNetwork: boolean;
  engine: EngineKind | undefined;
  dns: string[];
  addHosts: HostAddress[];
  network: string | undefined;
  image: ImageWish;
};

/** A command line that was understood. */
export type Command =
  | { verb: "start"; agent: AgentWord | undefined; args: string[]; options: Options }
  | { verb: "login"; agent: AgentWord; options: Options }
  | { verb: "shell"; admin: boolean; command: string[] | undefined; options: Options }
  | { verb: "run"; command: string[]; options: Options }
  | { verb: "rebuild"; agent: AgentWord | undefined; options: Options }
  | { verb: "ssh-init" | "doctor" | "cleanup"; options: Options }
  | { verb: "help"; topic: Verb | undefined }
  | { verb: "version" };

export type Surroundings = {
  /** Names of the agents that have a profile. */
  agents: readonly string[];
  /** Complains about a path that is not there or not of its kind. */
  checkPath: (kind: "directory" | "file", typed: string) => Complaint | undefined;
  /** AGENTBOX_FIREWALL of the caller's environment. */
  firewall: string | undefined;
};

/** Parses a command line (without program names). Throws UsageError that holds all of its mistakes. */
export function parseCommandLine(argv: readonly string[], { agents, checkPath, firewall }: Surroundings): Command {
  const words = splitWords(argv);
  const { complaints } = words;
  const typed = (name: string): boolean => words.options.some(({ spec }) => spec.name === name);
  const verb = findVerb(words, typed("rebuild"));
  if (typed("help")) return { verb: "help", topic: argv.length > 1 ? verb : undefined };
  if (typed("version")) return { verb: "version" };
  complaints.push(...refuseForeignOptions(words.options, verb), ...refuseRepeats(words.options));
  const options = readOptions(words.options, agents, complaints);
  complaints.push(...refusePortClashes(options.ports), ...refusePaths(options, checkPath));
  const misset = checkSwitch(firewall);
  if (misset !== undefined && boxVerbs.includes(verb)) complaints.push(misset);
  const command = readCommand({ verb, words, agents, options, admin: typed("admin"), complaints });
  if (complaints.length > 0 || command === undefined) throw new UsageError(complaints);
  return command;
}

/** The verb is the first word, `login` the second one after an agent; anything else starts an agent. */
function findVerb({ words }: Words, rebuild: boolean): Verb {
  if (rebuild) return "rebuild";
  const written = verbs.find((verb) => verb === words[0]);
  if (written !== undefined && written !== "login" && written !== "rebuild" && written !== "start") return written;
  return words[1] === "login" ? "login" : "start";
}

type Reading = { verb: Verb; words: Words; agents: readonly string[]; options: Options; admin: boolean; complaints: Complaint[] };

function readCommand({ verb, words, agents, options, admin, complaints }: Reading): Command | undefined {
  const takesAgent = verb === "start" || verb === "login" || verb === "rebuild";
  const agent = takesAgent ? readAgent(words.words[0], agents, complaints) : undefined;
  for (const word of words.words.slice(verb === "login" ? 2 : 1)) {
    complaints.push({ what: `${quote(word)} is one word too many`, fix: verb === "start" ? `arguments of the agent go after --: agentbox ${words.words[0] ?? ""} -- ${word}` : "a command goes after --" });
  }
  const { tail } = words;
  if (tail !== undefined && verb !== "start" && verb !== "shell" && verb !== "run") complaints.push({ what: `${verb} takes nothing after --`, fix: "leave it out" });
  switch (verb) {
    case "start":
      return { verb, agent, args: tail ?? [], options };
    case "login":
      return agent === undefined ? undefined : { verb, agent, options };
    case "rebuild":
      return { verb, agent, options };
    case "shell":
      if (tail?.length === 0) complaints.push({ what: "there is no command after --", fix: "agentbox shell -- COMMAND, or agentbox shell for a shell" });
      return { verb, admin, command: tail, options };
    case "run":
      if (tail === undefined || tail.length === 0) complaints.push({ what: "run needs a command", expected: "agentbox run -- COMMAND" });
      return { verb, command: tail ?? [], options };
    case "ssh-init":
    case "doctor":
    case "cleanup":
      return { verb, options };
  }
}

function readAgent(word: string | undefined, agents: readonly string[], complaints: Complaint[]): AgentWord | undefined {
  if (word === undefined) return undefined;
  const answer = parseAgentWord(word, agents);
  if (answer.ok) return answer.value;
  if (agents.includes(word.split("@")[0] ?? "")) {
    complaints.push(answer.complaint);
    return undefined;
  }
  const near = findNearest(word, [...agents, ...verbs.filter((verb) => verb !== "start" && verb !== "login" && verb !== "rebuild")]);
  complaints.push({
    what: `${quote(word)} is neither an agent nor a command`,
    expected: `${agents.join(", ")}, shell, run, ssh-init, doctor or cleanup`,
    fix: near === undefined ? "see agentbox --help" : `did you mean ${near}?`,
  });
  return undefined;
}

function refuseForeignOptions(options: readonly TypedOption[], verb: Verb): Complaint[] {
  const foreign = options.filter(({ spec }) => !spec.verbs.includes(verb));
  return foreign.map(({ spec }) => ({ what: `--${spec.name} has no meaning for ${verb}`, fix: `leave it out, or see agentbox ${verb === "start" ? "" : `${verb} `}--help` }));
}

function refuseRepeats(options: readonly TypedOption[]): Complaint[] {
  const single = options.filter(({ spec }) => spec.value !== undefined && spec.repeat !== true);
  const names = new Map<OptionSpec, number>();
  for (const { spec } of single) names.set(spec, (names.get(spec) ?? 0) + 1);
  return [...names].filter(([, count]) => count > 1).map(([spec]) => ({ what: `--${spec.name} is given more than once`, fix: "keep one of them" }));
}

function refusePaths({ addDirs, image }: Options, checkPath: Surroundings["checkPath"]): Complaint[] {
  const directories = addDirs.map((typed) => ({ option: "--add-dir", complaint: checkPath("directory", typed) }));
  const files = typeof image.caFile === "string" ? [{ option: "--ca-file", complaint: checkPath("file", image.caFile) }] : [];
  return [...directories, ...files].flatMap(({ option, complaint }) => (complaint === undefined ? [] : [{ ...complaint, what: `${option} ${complaint.what}` }]));
}

function refusePortClashes(ports: readonly PortMapping[]): Complaint[] {
  const clashes = ports.filter((port, index) => ports.slice(0, index).some((other) => other.host === port.host && other.address === port.address && other.protocol === port.protocol));
  return clashes.map(({ address, host, protocol }) => ({ what: `-p publishes ${address}:${host}/${protocol} twice`, fix: "choose another port of the host" }));
}

function readOptions(typed: readonly TypedOption[], agents: readonly string[], complaints: Complaint[]): Options {
  const values = (name: string): string[] => typed.flatMap(({ spec, value }) => (spec.name === name && value !== undefined ? [value] : []));
  const has = (name: string): boolean => typed.some(({ spec }) => spec.name === name);
  const each = <T>(name: string, parse: (text: string) => Parsed<T>): T[] => values(name).flatMap((text) => collect(parse(text), complaints));
  const list = values("agents").flatMap((text) => text.split(/[\s,]+/)).filter((word) => word !== "" && word !== "none");
  return {
    ports: each("port", parsePortMapping),
    addDirs: values("add-dir"),
    yesSecrets: has("yes-secrets"),
    env: each("env", parseVariable),
    ignoreDotEnv: has("ignore-dot-env"),
    dryRun: has("dry-run"),
    fullNetwork: has("full-network"),
    engine: each("engine", parseEngineKind)[0],
    dns: each("dns", parseResolver),
    addHosts: each("add-host", parseHostAddress),
    network: each("network", parseNetworkName)[0],
    image: {
      agents: has("agents") ? list.flatMap((word) => collect(parseAgentWord(word, agents), complaints)) : undefined,
      packages: has("package") ? values("package").filter((name) => name !== "none").flatMap((name) => collect(parsePackage(name), complaints)) : undefined,
      base: each("base", parseBase)[0],
      caFile: values("ca-file").map((file) => (file === "none" ? null : file))[0],
    },
  };
}

function collect<T>(answer: Parsed<T>, complaints: Complaint[]): T[] {
  if (answer.ok) return [answer.value];
  complaints.push(answer.complaint);
  return [];
}
