import { type Complaint, UsageError } from "../policy/errors.ts";
import type { Parsed } from "../policy/parsed.ts";
import { checkEnvironment, type SteeringVariables } from "./args-environment.ts";
import type { OptionSpec, Verb } from "./args-options.ts";
import { isAskingVerb, type PolicyCommand, readPolicyCommand } from "./args-policy.ts";
import { type AgentWord, parseAgentWord, parseBase, parseEngineKind, parseHostAddress, parseNetworkName, parsePackage, parsePortMapping, parseResolver, parseEnforcement, parseTopology, parseVariable, type Enforcement, type Topology } from "./args-values.ts";
import { findTopic, findVerb, isGroup, readAgent, refuseGroupAlone, refuseLoginAlone, refuseStrayWords, renderHelpCall, type Topic } from "./args-verb.ts";
import { splitWords, type TypedOption, type Words } from "./args-words.ts";
import type { HostAddress, PortMapping } from "./engine/container-plan.ts";
import type { EngineKind } from "./engine/engine.ts";
import { checkResolvers } from "./session/firewall-switch.ts";

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
  /** The box gets no terminal, and nobody is asked. */
  batch: boolean;
  engine: EngineKind | undefined;
  dns: string[];
  addHosts: HostAddress[];
  network: string | undefined;
  topology: Topology | undefined;
  enforcement: Enforcement | undefined;
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
  | PolicyCommand
  | { verb: "help"; topic: Topic | undefined }
  | { verb: "version" };

export type Surroundings = SteeringVariables & {
  /** Names of the agents that have a profile. */
  agents: readonly string[];
  /** Complains about a path that is not there or not of its kind. */
  checkPath: (kind: "directory" | "file", typed: string) => Complaint | undefined;
};

/** Parses a command line (without program names). Throws UsageError that holds all of its mistakes. */
export function parseCommandLine(argv: readonly string[], { agents, checkPath, firewall, log }: Surroundings): Command {
  const words = splitWords(argv);
  const typed = (name: string): boolean => words.options.some(({ spec }) => spec.name === name);
  if (words.words[0] === "help") return readHelp(words.words.slice(1), typed("rebuild"), agents);
  const { complaints } = words;
  const lonely = refuseGroupAlone(words.words);
  if (lonely.length > 0) {
    if (typed("help")) return { verb: "help", topic: words.words.find(isGroup) };
    throw new UsageError(lonely);
  }
  const verb = findVerb(words.words, typed("rebuild"));
  if (typed("help")) {
    const unknown: Complaint[] = [];
    if (verb === "start" || verb === "rebuild") readAgent(words.words[0], agents, unknown);
    if (unknown.length > 0) throw new UsageError(unknown);
    return { verb: "help", topic: argv.length > 1 ? verb : undefined };
  }
  complaints.push(...refuseForeignOptions(words.options, verb), ...refuseRepeats(words.options));
  const options = readOptions(words.options, agents, complaints);
  complaints.push(...refusePortClashes(options.ports), ...refusePaths(options, checkPath));
  if (!typed("version")) complaints.push(...checkEnvironment({ firewall, log }, verb));
  if (firewall === "1" && !options.fullNetwork) complaints.push(...checkResolvers(options.dns));
  const command = typed("version") ? readVersion(verb, words.words, agents, complaints) : readCommand({ verb, words, agents, options, admin: typed("admin"), complaints });
  if (complaints.length > 0 || command === undefined) throw new UsageError(complaints);
  return command;
}

/** Who asks for help gets it although options beside it are wrong; only what to explain must be known. */
function readHelp(words: readonly string[], rebuild: boolean, agents: readonly string[]): Command {
  const complaints: Complaint[] = [];
  const topic = findTopic(words, { rebuild, agents, complaints });
  if (complaints.length > 0) throw new UsageError(complaints);
  return { verb: "help", topic };
}

/** `run --version` needs no command, yet what cannot be understood is told. */
function readVersion(verb: Verb, words: readonly string[], agents: readonly string[], complaints: Complaint[]): Command {
  if (isAskingVerb(verb)) return { verb: "version" };
  if (verb === "start" || verb === "rebuild") readAgent(words[0], agents, complaints);
  complaints.push(...refuseStrayWords(words, verb));
  return { verb: "version" };
}

type Reading = { verb: Verb; words: Words; agents: readonly string[]; options: Options; admin: boolean; complaints: Complaint[] };

function readCommand({ verb, words, agents, options, admin, complaints }: Reading): Command | undefined {
  if (isAskingVerb(verb)) {
    if (words.tail !== undefined && verb !== "preflight") complaints.push({ what: `${verb} takes nothing after --`, fix: "leave it out" });
    const taken = verb.split(" ").length;
    return readPolicyCommand({ verb, words: words.words.slice(taken), tail: words.tail ?? [], options: words.options, engine: options.engine, agents, complaints });
  }
  const loginAlone = verb === "login" ? refuseLoginAlone(words.words, agents) : [];
  const takesAgent = (verb === "start" || verb === "login" || verb === "rebuild") && loginAlone.length === 0;
  const agent = takesAgent ? readAgent(words.words[0], agents, complaints) : undefined;
  complaints.push(...loginAlone, ...refuseStrayWords(words.words, verb));
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

function refuseForeignOptions(options: readonly TypedOption[], verb: Verb): Complaint[] {
  const foreign = options.filter(({ spec }) => !spec.verbs.includes(verb));
  return foreign.map(({ spec }) => ({ what: `--${spec.name} has no meaning for ${verb}`, fix: `leave it out, or see ${renderHelpCall(verb)}` }));
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
    batch: has("batch"),
    engine: each("engine", parseEngineKind)[0],
    dns: each("dns", parseResolver),
    addHosts: each("add-host", parseHostAddress),
    network: each("network", parseNetworkName)[0],
    topology: each("topology", parseTopology)[0],
    enforcement: each("enforcement", parseEnforcement)[0],
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
