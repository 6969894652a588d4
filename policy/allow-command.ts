import { classifyAddress, isPinnable } from "./address-class.ts";
import type { Reason } from "./decide.ts";
import { renderOrigin } from "./effective-list.ts";
import { parseHost, type Host } from "./host-name.ts";
import { isLoopback } from "./loopback.ts";
import { quote } from "./parsed.ts";
import { renderRule, type PolicyRule } from "./policy.ts";

/** What was refused: a `Decision` fits. `rule` is the rule that denied, where there is one. */
export type Refused = { host: string; port?: number | null | undefined; reason: Reason; rule?: PolicyRule | undefined };

/** How to allow it: a command that a human may paste, or one sentence where no command can. */
export type AllowAnswer = { command: string } | { advice: string };

/** Where what is allowed is written down: the configuration of a box, or the file of the stand-alone proxy. */
export type AllowPlace = {
  /** The command that takes a host, up to it. */
  command: string;
  /** How the lists are called. */
  hosts: string;
  ranges: string;
  /** Who reaches hosts. */
  who: string;
  /** Whether names may be opened together with the private addresses that they lead to. */
  privateHosts: boolean;
};

const BOX: AllowPlace = { command: "agentbox policy allow", hosts: "allow_hosts", ranges: "allow_private of [network]", who: "the box", privateHosts: true };

/** Port that an entry means when it names none. */
const DEFAULT_PORT = 443;

/**
 * Works out the command that would allow what was refused. No command is offered for what a paste must
 * not open: special-purpose addresses, names that lead there, and hosts that somebody blocked on purpose.
 * The command holds canonical text only, so nothing that an agent asked for can act on a shell.
 */
export function renderAllowCommand({ host, port, reason, rule }: Refused, place: AllowPlace = BOX): AllowAnswer {
  if (reason === "allowed") return { advice: "it is allowed already" };
  const parsedHost = parseHost(host);
  if (!parsedHost.ok) return { advice: "no command allows a malformed host" };
  if (reason === "denied") return { advice: adviseDenied(rule) };
  if (reason === "not_allowed_local") return { advice: adviseLocal(host, port ?? undefined, place) };
  if (reason !== "not_allowed") return { advice: ADVICE[reason] };
  const advice = adviseHost(parsedHost.value, port ?? undefined, place);
  return advice === undefined ? { command: `${place.command} ${renderArgument(parsedHost.value, port ?? undefined)}` } : { advice };
}

/** What no rule for a host can allow. */
const ADVICE: Readonly<Record<Exclude<Reason, "allowed" | "denied" | "not_allowed" | "not_allowed_local">, string>> = {
  method_not_allowed: 'the mode is "limited": set mode = "full" in [network_proxy] to allow methods that write',
  mitm_required: 'the mode is "limited" and nobody reads what this host is asked: set enabled = true in [network_proxy.mitm] and take the host out of its passthrough list, or set mode = "full" in [network_proxy]',
  host_mismatch: "the connection names two different hosts: no rule allows that",
  proxy_disabled: "the proxy is off: set enabled = true in [network_proxy]",
  unix_socket_unsupported: "list the socket in allow_unix_sockets of [network_proxy.policy]",
};

/** The command of an answer, and null where there is none: the `hint` of a decision record. */
export function commandOf(answer: AllowAnswer): string | null {
  return "command" in answer ? answer.command : null;
}

/** The same command for where no box runs: only the file can be changed then. */
export function renderAlways(command: string): string {
  return command.replace(/^agentbox policy allow (?!--)/, "agentbox policy allow --always ");
}

function adviseDenied(rule: PolicyRule | undefined): string {
  if (rule === undefined) return "no command allows a malformed question";
  const where = rule.origins.map((origin) => renderOrigin(origin)).join(", ");
  const named = `${quote(rule.text)}${where === "" ? "" : ` (${where})`}`;
  if (rule.tier === "block" && rule.ports !== "any") return `port ${rule.ports.join(" and ")} of ${rule.match.kind === "range" ? rule.text : "every host"} is closed${where === "" ? "" : ` by ${where}`}`;
  if (rule.tier === "block") return `remove the block ${named} first: a block wins over every allow`;
  return `change the rule ${quote(renderRule(rule))}${where === "" ? "" : ` (${where})`}, or put an allow rule in front of it`;
}

function adviseLocal(host: string, port: number | undefined, { hosts, ranges, privateHosts }: AllowPlace): string {
  const other = privateHosts ? `the host in ${hosts} as ${tableForm(host, port ?? DEFAULT_PORT)}` : `set allow_local_binding = true where it is this machine's loopback`;
  return `it leads to an address that is not on the internet; list the address in ${ranges}, or ${other}`;
}

/** Says why no command is offered for the host; undefined where one is. */
function adviseHost(host: Host, port: number | undefined, { hosts, who, privateHosts }: AllowPlace): string | undefined {
  if (host.kind === "name") {
    if (host.name.endsWith(".arpa")) return "names of addresses (reverse DNS) are not answered";
    if (host.name.includes(".")) return undefined;
    if (!privateHosts && isLoopback(host)) return adviseThisMachine(host, port, hosts);
    return privateHosts ? `a name without a dot is allowed in ${hosts} only, as ${tableForm(host.name, port ?? DEFAULT_PORT)}` : `a name without a dot cannot be allowed; list its address in ${hosts}`;
  }
  const addressClass = classifyAddress(host.address);
  if (addressClass.kind === "public") return undefined;
  const { text } = host.address;
  if (!privateHosts && isLoopback(host)) return adviseThisMachine(host, port, hosts);
  if (!isPinnable(addressClass)) return `${text} is ${addressClass.name}: ${privateHosts ? "nothing in a box should need it" : "no list opens it"}`;
  return `${text} is ${addressClass.name}; list ${quote(renderTarget(host, port))} in ${hosts} if ${who} shall reach it`;
}

function adviseThisMachine(host: Host, port: number | undefined, hosts: string): string {
  return `it is this machine: list ${quote(renderTarget(host, port))} in ${hosts}, and set allow_local_binding = true`;
}

function tableForm(host: string, port: number): string {
  return `{ host = ${quote(host)}, ports = [${port}], private = true }`;
}

function renderTarget(host: Host, port: number | undefined): string {
  const text = host.kind === "name" ? host.name : host.address.text;
  if (port === undefined || port === DEFAULT_PORT) return text;
  return text.includes(":") ? `[${text}]:${port}` : `${text}:${port}`;
}

/** Brackets are patterns to some shells. */
function renderArgument(host: Host, port: number | undefined): string {
  const text = renderTarget(host, port);
  return text.includes("[") ? `'${text}'` : text;
}
