import { parseAddress } from "../policy/address.ts";
import { isVariableName, parseBase as parseBaseWord, parsePackage as parsePackageWord, parsePortMapping as parsePortWord, type PortMapping } from "../policy/box-words.ts";
import { ENFORCEMENTS, TOPOLOGIES } from "../policy/config-schema.ts";
import { parseHostName } from "../policy/host-name.ts";
import { type Parsed, parsed, quote, refused } from "../policy/parsed.ts";
import { PREFLIGHT_MODES, type PreflightMode } from "../policy/preflight-mode.ts";
import type { HostAddress } from "./engine/container-plan.ts";
import { type EngineKind, engineKinds } from "./engine/engine.ts";
import { explainRefusedNetwork } from "./engine/security.ts";

/** Parses the value of -p. */
export function parsePortMapping(text: string): Parsed<PortMapping> {
  return parsePortWord(text, "-p ");
}

export { type AgentWord, parseAgentWord } from "../policy/box-words.ts";

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

export type Topology = (typeof TOPOLOGIES)[number];
export type Enforcement = (typeof ENFORCEMENTS)[number];

/** Parses the name of a topology. */
export function parseTopology(text: string): Parsed<Topology> {
  const topology = TOPOLOGIES.find((candidate) => candidate === text);
  return topology === undefined ? refused(`--topology ${quote(text)} is not a topology`, TOPOLOGIES.join(" or ")) : parsed(topology);
}

/** Parses what the firewall is to decide by. */
export function parseEnforcement(text: string): Parsed<Enforcement> {
  const enforcement = ENFORCEMENTS.find((candidate) => candidate === text);
  return enforcement === undefined ? refused(`--enforcement ${quote(text)} is not an enforcement`, ENFORCEMENTS.join(" or ")) : parsed(enforcement);
}

/** Parses how closely a command line is looked at before it runs. */
export function parsePreflightMode(text: string): Parsed<PreflightMode> {
  const mode = PREFLIGHT_MODES.find((candidate) => candidate === text);
  return mode === undefined ? refused(`--mode ${quote(text)} is not a mode`, PREFLIGHT_MODES.join(" or ")) : parsed(mode);
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
  if (!isVariableName(key)) return refused(`-e ${quote(text)}: ${quote(key)} is not the name of a variable`, "KEY=VALUE, or KEY to take the host's value");
  return text.includes("\0") ? refused(`-e ${key} holds a NUL character`, "text") : parsed(text);
}

/** Parses the value of --package. */
export function parsePackage(text: string): Parsed<string> {
  return parsePackageWord(text, "--package ");
}

/** Parses the value of --base. */
export function parseBase(text: string): Parsed<string> {
  return parseBaseWord(text, "--base ");
}
