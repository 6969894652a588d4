import { parseAddress } from "../policy/address.ts";
import { parseHostName, parsePort } from "../policy/host-name.ts";
import { type Parsed, parsed, quote, refused } from "../policy/parsed.ts";
import type { HostAddress, PortMapping } from "./engine/container-plan.ts";
import { type EngineKind, engineKinds } from "./engine/engine.ts";
import { explainRefusedNetwork } from "./engine/security.ts";
import { findNearest } from "../policy/nearest.ts";

/** Parses `PORT`, `HOST:CONTAINER` or `ADDRESS:HOST:CONTAINER`, each with an optional `/tcp` or `/udp`. */
export function parsePortMapping(text: string): Parsed<PortMapping> {
  const match = /^(?:(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+)):(?=[^:]*:))?(?:(?<host>[^:]+):)?(?<container>[^:/]+)(?:\/(?<protocol>[a-z]+))?$/.exec(text);
  const { v4, v6, host, container = "", protocol = "tcp" } = match?.groups ?? {};
  const expected = "PORT, HOST:CONTAINER or ADDRESS:HOST:CONTAINER, with /udp for UDP";
  if (match === null) return refused(`-p ${quote(text)} is not a port`, expected);
  if (protocol !== "tcp" && protocol !== "udp") return refused(`-p ${quote(text)} names the protocol ${quote(protocol)}`, "tcp or udp");
  const address = parseAddress(v6 ?? v4 ?? "127.0.0.1");
  if (!address.ok) return refused(`-p ${quote(text)}: ${quote(v6 ?? v4 ?? "")} is not an address`, `an IP address of this machine (${expected})`);
  const inside = parsePort(container);
  const outside = parsePort(host ?? container);
  if (!inside.ok || !outside.ok) return refused(`-p ${quote(text)}: ${quote(inside.ok ? (host ?? "") : container)} is not a port`, "a number from 1 to 65535");
  return parsed({ address: address.value.text, host: outside.value, container: inside.value, protocol });
}

/** Parses the address of a resolver. */
export function parseResolver(text: string): Parsed<string> {
  const address = parseAddress(text);
  return address.ok ? parsed(address.value.text) : refused(`--dns ${quote(text)} is not an address`, "an IP address, such as 9.9.9.9");
}

/** Parses `HOST:IP`; the engine's word `host-gateway` stands for the host's address on the box's network. */
export function parseHostAddress(text: string): Parsed<HostAddress> {
  const colon = text.indexOf(":");
  const expected = "HOST:IP, such as db:10.0.0.5";
  if (colon < 1) return refused(`--add-host ${quote(text)} has no address`, expected);
  const name = parseHostName(text.slice(0, colon));
  if (!name.ok) return refused(`--add-host ${quote(text)}: ${name.complaint.what}`, expected);
  const word = text.slice(colon + 1).replace(/^\[(.*)\]$/, "$1");
  if (word === "host-gateway") return parsed({ name: name.value, address: word });
  const address = parseAddress(word);
  if (!address.ok) return refused(`--add-host ${quote(text)}: ${quote(word)} is not an address`, expected);
  return parsed({ name: name.value, address: address.value.text });
}

/** Parses the name of an engine. */
export function parseEngineKind(text: string): Parsed<EngineKind> {
  const kind = engineKinds.find((candidate) => candidate === text);
  return kind === undefined ? refused(`--engine ${quote(text)} is not an engine`, engineKinds.join(" or ")) : parsed(kind);
}

/** Parses the name of a network; words that stand for the host's or another container's network are refused. */
export function parseNetworkName(text: string): Parsed<string> {
  const reason = explainRefusedNetwork(text);
  if (reason !== undefined) return refused(`--network ${quote(text)} is refused: ${reason}`, "the name of a bridge network");
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(text)) return refused(`--network ${quote(text)} is not the name of a network`, "letters, digits, dots, dashes and underscores");
  return parsed(text);
}

/** Parses `KEY` or `KEY=VALUE` and returns it unchanged. */
export function parseVariable(text: string): Parsed<string> {
  const [key = ""] = text.split("=", 1);
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) return refused(`-e ${quote(text)}: ${quote(key)} is not the name of a variable`, "KEY=VALUE, or KEY to take the host's value");
  return text.includes("\0") ? refused(`-e ${key} holds a NUL character`, "text") : parsed(text);
}

/** Parses the name of a Debian package, which may carry `=VERSION`. */
export function parsePackage(text: string): Parsed<string> {
  if (/^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$/.test(text)) return parsed(text);
  return refused(`--package ${quote(text)} is not the name of a Debian package`, "a name such as jq or jq=1.6-2");
}

/** Parses a reference of an image, or `local`. */
export function parseBase(text: string): Parsed<string> {
  if (/^[a-z0-9][A-Za-z0-9._:@/-]*$/.test(text)) return parsed(text);
  return refused(`--base ${quote(text)} is not an image`, "local, or a reference such as node:24-bookworm-slim");
}

/** An agent as it was typed: `codex`, or `codex@1.2.3` to pin a version. */
export type AgentWord = { name: string; version: string | undefined };

/** Parses `NAME` or `NAME@VERSION`. `known` are the names of the agents that have a profile. */
export function parseAgentWord(text: string, known: readonly string[]): Parsed<AgentWord> {
  const at = text.indexOf("@");
  const name = at === -1 ? text : text.slice(0, at);
  const version = at === -1 ? undefined : text.slice(at + 1);
  if (!known.includes(name)) {
    const near = findNearest(name, known);
    return refused(`there is no agent ${quote(name)}`, known.join(", "), near === undefined ? undefined : `did you mean ${near}?`);
  }
  if (version !== undefined && !/^[0-9A-Za-z][0-9A-Za-z.+-]*$/.test(version)) return refused(`${quote(text)} has no usable version`, `${name}@1.2.3`);
  return parsed({ name, version });
}
