import type { Complaint } from "../policy/errors.ts";
import { parseBlock, renderBlock } from "../policy/block.ts";
import { parseEntry, renderEntry } from "../policy/entry.ts";
import { type Parsed, parsed, quote, refused, trimBlanks } from "../policy/parsed.ts";
import type { PreflightMode } from "../policy/preflight-mode.ts";
import type { PolicyVerb, Verb } from "./args-options.ts";
import { type AuditCommand, readAuditCommand } from "./args-audit.ts";
import { type McpCommand, readMcpCommand } from "./args-mcp.ts";
import { parsePreflightMode } from "./args-values.ts";
import { type ConfirmCommand, readConfirmCommand } from "./args-confirm.ts";
import { type ProxyCommand, readProxyCommand } from "./args-proxy.ts";
import type { TypedOption } from "./args-words.ts";
import type { EngineKind } from "./engine/engine.ts";

/** How long a change holds: a minute, the running sessions, or those and the configuration file. */
export type ChangeScope = "once" | "session" | "always";

/** What `agentbox setup` was told by options; all empty where it is to ask. */
export type SetupWish = {
  agent: string | undefined;
  presets: string[];
  allow: string[];
  topology: string | undefined;
  user: boolean;
  force: boolean;
};

/** A command about the policy, its log, or the file that it comes from. */
export type PolicyCommand =
  | { verb: "policy show" | "policy check"; agent: string | undefined; json: boolean }
  | { verb: "policy explain"; question: string; agent: string | undefined; json: boolean }
  | { verb: "policy diff"; engine: EngineKind | undefined }
  | { verb: "policy presets"; preset: string | undefined }
  | { verb: "policy apply"; preset: string; engine: EngineKind | undefined }
  | { verb: "policy allow" | "policy deny"; hosts: string[]; scope: ChangeScope; engine: EngineKind | undefined }
  | { verb: "policy trust" }
  | { verb: "policy suggest"; session: string | undefined; json: boolean }
  | { verb: "blocked"; all: boolean; session: string | undefined; json: boolean }
  | { verb: "logs"; follow: boolean; session: string | undefined; json: boolean }
  | { verb: "logs stats"; session: string | undefined; json: boolean }
  | { verb: "preflight"; command: string[]; mode: PreflightMode | undefined; agent: string | undefined; json: boolean }
  | { verb: "hook claude" }
  | { verb: "proxy seatbelt-profile"; file: string | undefined }
  | ProxyCommand
  | ConfirmCommand
  | AuditCommand
  | McpCommand
  | { verb: "setup"; wish: SetupWish };

/** The verbs that `readPolicyCommand` reads. */
const askingVerbs = ["blocked", "logs", "logs stats", "audit show", "audit verify", "audit summary", "confirm list", "confirm approve", "confirm deny", "mcp", "setup", "preflight", "hook claude", "proxy", "proxy ctl", "proxy seatbelt-profile"] as const;
export type AskingVerb = PolicyVerb | (typeof askingVerbs)[number];

/** Tells whether a verb is one of those. */
export function isAskingVerb(verb: Verb): verb is AskingVerb {
  return verb.startsWith("policy ") || askingVerbs.some((asking) => asking === verb);
}

type Reading = {
  verb: AskingVerb;
  /** What stands after the verb. */
  words: readonly string[];
  /** What stands after `--`. */
  tail: readonly string[];
  options: readonly TypedOption[];
  engine: EngineKind | undefined;
  agents: readonly string[];
  complaints: Complaint[];
};

/** Reads the words and options of a verb about the policy. */
export function readPolicyCommand({ verb, words, tail, options, engine, agents, complaints }: Reading): PolicyCommand | undefined {
  const has = (name: string): boolean => options.some(({ spec }) => spec.name === name);
  const values = (name: string): string[] => options.flatMap(({ spec, value }) => (spec.name === name && value !== undefined ? [value] : []));
  const each = (texts: readonly string[], parse: (text: string) => Parsed<string>): string[] => texts.flatMap((text) => collect(parse(text), complaints));
  const word = (name: string, example: string): string => readWord({ words, verb, name, example, complaints });
  const json = has("json");
  const session = values("session")[0];
  const agent = each(values("agent"), (text) => parseAgentName(text, agents))[0];
  if (!takesWords(verb)) complaints.push(...refuseFurtherWords(words, verb));
  switch (verb) {
    case "policy show":
    case "policy check":
      return { verb, agent, json };
    case "policy explain":
      return { verb, question: word("HOST[:PORT]", "example.com:443"), agent, json };
    case "policy diff":
      return { verb, engine };
    case "policy presets":
      return { verb, preset: words[0] };
    case "policy apply":
      return { verb, preset: word("PRESET", "rust; agentbox policy presets lists them"), engine };
    case "policy allow":
    case "policy deny": {
      if (words.length === 0) complaints.push({ what: `${verb} needs a host`, expected: `agentbox ${verb} HOST`, fix: `write agentbox ${verb} example.com` });
      return { verb, hosts: each(words, verb === "policy allow" ? parseAllowedHost : parseDeniedHost), scope: readScope(options, complaints), engine };
    }
    case "policy trust":
      return { verb };
    case "policy suggest":
      return { verb, session, json };
    case "blocked":
      return { verb, all: has("all"), session, json };
    case "logs":
      return { verb, follow: has("follow"), session, json };
    case "logs stats":
      if (words.length > 0 && session !== undefined) complaints.push({ what: `${quote(words[0] ?? "")} and --session both name a session`, fix: "keep one of them" });
      complaints.push(...refuseFurtherWords(words.slice(1), verb));
      return { verb, session: session ?? words[0], json };
    case "confirm list":
    case "confirm approve":
    case "confirm deny":
      return readConfirmCommand({ verb, words, has, complaints });
    case "audit show":
    case "audit verify":
    case "audit summary":
      return readAuditCommand({ verb, words, has, value: (name) => values(name)[0], complaints });
    case "mcp":
      return readMcpCommand({ value: (name) => values(name)[0], values, complaints });
    case "preflight":
      if (tail.length === 0) complaints.push({ what: "preflight needs a command", expected: "agentbox preflight -- COMMAND" });
      return { verb, command: [...tail], mode: values("mode").flatMap((text) => collect(parsePreflightMode(text), complaints))[0], agent, json };
    case "hook claude":
      return { verb };
    case "proxy":
    case "proxy ctl":
      return readProxyCommand({ verb, words, has, value: (name) => values(name)[0], complaints });
    case "proxy seatbelt-profile":
      return { verb, file: values("config")[0] };
    case "setup":
      return { verb, wish: { agent, presets: values("preset"), allow: each(values("allow"), parseAllowedHost), topology: values("topology")[0], user: has("user"), force: has("force") } };
  }
}

/** Parses a host that shall be let through, and says where it belongs when this is no way to allow it. */
export function parseAllowedHost(text: string): Parsed<string> {
  const word = trimBlanks(text);
  if (word === "*" || word === "**") return refused(`${quote(word)} is every host there is`, "one host", "start with --full-network if the box shall have no firewall");
  const private_ = /^(?:tcp:\/\/)?(?<host>localhost|host\.docker\.internal|[a-z0-9_-]+)(?::(?<ports>[0-9,]+))?$/i.exec(word)?.groups;
  const host = private_?.["host"];
  // A bare IPv6 address has colons as well, and is judged below.
  if (host !== undefined && !/^[0-9]+$/.test(host)) {
    return refused(
      `${quote(word)} is a name of the local network`,
      "a name of the internet, or an address",
      host.toLowerCase() === "localhost" ? "programs in the box reach each other on localhost anyway" : `write { host = "${host.toLowerCase()}", ports = [${private_?.["ports"]?.replaceAll(",", ", ") ?? "5432"}], private = true } into allow_hosts of .agentbox/config.toml and start anew`,
    );
  }
  const entry = parseEntry(word, "list");
  return entry.ok ? parsed(renderEntry(entry.value)) : entry;
}

function parseDeniedHost(text: string): Parsed<string> {
  const block = parseBlock(text);
  return block.ok ? parsed(renderBlock(block.value)) : block;
}

function parseAgentName(text: string, agents: readonly string[]): Parsed<string> {
  return agents.includes(text) ? parsed(text) : refused(`--agent ${quote(text)} is no agent`, agents.join(", "));
}

function readScope(options: readonly TypedOption[], complaints: Complaint[]): ChangeScope {
  const typed = (["once", "session", "always"] as const).filter((name) => options.some(({ spec }) => spec.name === name));
  if (typed.length > 1) complaints.push({ what: `${typed.map((name) => `--${name}`).join(" and ")} exclude each other`, fix: "keep one of them" });
  return typed[0] ?? "session";
}

function takesWords(verb: AskingVerb): boolean {
  return ["policy explain", "policy presets", "policy apply", "policy allow", "policy deny", "logs stats", "audit show", "audit verify", "audit summary", "confirm list", "confirm approve", "confirm deny", "proxy", "proxy ctl"].includes(verb);
}

function refuseFurtherWords(words: readonly string[], verb: string): Complaint[] {
  return words.map((stray) => ({ what: `${quote(stray)} is one word too many`, fix: verb === "preflight" ? `a command goes after --: agentbox preflight -- ${stray}` : `leave it out, or see agentbox help ${verb}` }));
}

function readWord({ words, verb, name, example, complaints }: { words: readonly string[]; verb: string; name: string; example: string; complaints: Complaint[] }): string {
  const [word, ...rest] = words;
  if (word === undefined) complaints.push({ what: `${verb} needs a word`, expected: `agentbox ${verb} ${name}`, fix: `write agentbox ${verb} ${example}` });
  complaints.push(...rest.map((stray) => ({ what: `${quote(stray)} is one word too many`, fix: `ask about one at a time: agentbox ${verb} ${name}` })));
  return word ?? "";
}

function collect<T>(answer: Parsed<T>, complaints: Complaint[]): T[] {
  if (answer.ok) return [answer.value];
  complaints.push(answer.complaint);
  return [];
}
