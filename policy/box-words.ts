import { parseAddress } from "./address.ts";
import { parsePort } from "./host-name.ts";
import { findNearest } from "./nearest.ts";
import { parsed, quote, refused, type Parsed } from "./parsed.ts";

/**
 * Words that the command line and the configuration share. `said` is what stands in front of the word
 * in messages: the option it was given to, or nothing where the place of a file says it.
 */

/** A port of the box that the engine publishes on an address of the host. */
export type PortMapping = { address: string; host: number; container: number; protocol: "tcp" | "udp" };

/** An agent as it was typed: `codex`, or `codex@1.2.3` to pin a version. */
export type AgentWord = { name: string; version: string | undefined };

/** Parses `PORT`, `HOST:CONTAINER` or `ADDRESS:HOST:CONTAINER`, each with an optional `/tcp` or `/udp`. */
export function parsePortMapping(text: string, said = ""): Parsed<PortMapping> {
  const match = /^(?:(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+)):(?=[^:]*:))?(?:(?<host>[^:]+):)?(?<container>[^:/]+)(?:\/(?<protocol>[a-z]+))?$/.exec(text);
  const { v4, v6, host, container = "", protocol = "tcp" } = match?.groups ?? {};
  const expected = "PORT, HOST:CONTAINER or ADDRESS:HOST:CONTAINER, with /udp for UDP";
  const word = `${said}${quote(text)}`;
  if (match === null) return refused(`${word} is not a port`, expected);
  if (protocol !== "tcp" && protocol !== "udp") return refused(`${word} names the protocol ${quote(protocol)}`, "tcp or udp");
  const address = parseAddress(v6 ?? v4 ?? "127.0.0.1");
  if (!address.ok) return refused(`${word}: ${quote(v6 ?? v4 ?? "")} is not an address`, `an IP address of this machine (${expected})`);
  const inside = parsePort(container);
  const outside = parsePort(host ?? container);
  if (!inside.ok || !outside.ok) return refused(`${word}: ${quote(inside.ok ? (host ?? "") : container)} is not a port`, "a number from 1 to 65535");
  return parsed({ address: address.value.text, host: outside.value, container: inside.value, protocol });
}

/** Tells whether this is the name of a variable of the environment. */
export function isVariableName(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}

/** Parses the name of a Debian package, which may carry `=VERSION`. */
export function parsePackage(text: string, said = ""): Parsed<string> {
  if (/^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$/.test(text)) return parsed(text);
  return refused(`${said}${quote(text)} is not the name of a Debian package`, "a name such as jq or jq=1.6-2");
}

/** Parses a reference of an image, or `local`. */
export function parseBase(text: string, said = ""): Parsed<string> {
  if (/^[a-z0-9][A-Za-z0-9._:@/-]*$/.test(text)) return parsed(text);
  return refused(`${said}${quote(text)} is not an image`, "local, or a reference such as node:24-bookworm-slim");
}

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
