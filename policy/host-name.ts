import { domainToASCII, domainToUnicode } from "node:url";
import { parseAddress, type Address } from "./address.ts";
import { parsed, quote, refused, trimBlanks, type Parsed, type Refusal } from "./parsed.ts";

/** A host in canonical form: the only form that is matched, logged, resolved and dialled. */
export type Host = { kind: "name"; name: string } | { kind: "address"; address: Address };

export type HostPort = { host: Host; port: number | undefined };

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/;
const PLAIN_NAME = /^[a-z0-9_.-]+$/;
// The URL standard reads a host whose last label is a number as IPv4: no such top-level name exists.
const ENDS_IN_NUMBER = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;
const [DOT, HYPHEN, UNDERSCORE, LOWER_A, LOWER_Z, DIGIT_0, DIGIT_9] = [0x2e, 0x2d, 0x5f, 0x61, 0x7a, 0x30, 0x39] as const;
const EXPECTED_NAME = "a host name such as api.example.com";

/** Parses a host: a name, an IPv4 address, or an IPv6 address with or without brackets; a zone is cut off. */
export function parseHost(text: string): Parsed<Host> {
  if (isCanonicalName(text)) return parsed({ kind: "name", name: text });
  const word = trimBlanks(text);
  if (word.startsWith("[") || word.includes(":")) return parseIpv6Host(word);
  const undotted = word.endsWith(".") ? word.slice(0, -1) : word;
  if (ENDS_IN_NUMBER.test(undotted.toLowerCase())) {
    const address = parseAddress(undotted);
    if (address.ok) return parsed({ kind: "address", address: address.value });
  }
  const name = parseHostName(word);
  return name.ok ? parsed({ kind: "name", name: name.value }) : name;
}

/**
 * Canonicalises a host name (no address, no wildcard): blanks around it are cut, international names
 * become ASCII by UTS #46, case is lowered and one trailing dot removed. Everything else that is not a
 * plain name is refused, never repaired: control characters, spaces, percent signs, empty or overlong
 * labels, names over 253 bytes, numbers that a URL parser would read as an IPv4 address.
 */
export function parseHostName(text: string): Parsed<string> {
  if (isCanonicalName(text)) return parsed(text);
  const word = trimBlanks(text).toLowerCase();
  if (PLAIN_NAME.test(word)) return checkAsciiName(word, text);
  const complaint = refuseCharacters(word, text);
  if (complaint !== undefined) return complaint;
  // The function also decodes percent signs, but none is left here.
  const ascii = domainToASCII(word);
  if (ascii === "" || !PLAIN_NAME.test(ascii)) return refused(`${quote(text)} is not a valid international name`, EXPECTED_NAME);
  return checkAsciiName(ascii, text);
}

/** Parses `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address. */
export function parseHostPort(text: string): Parsed<HostPort> {
  const word = trimBlanks(text);
  const bracket = word.lastIndexOf("]");
  const colon = word.lastIndexOf(":");
  const bareIpv6 = !word.startsWith("[") && word.indexOf(":") !== colon;
  if (colon < 0 || colon < bracket || bareIpv6) {
    const host = parseHost(word);
    return host.ok ? parsed({ host: host.value, port: undefined }) : host;
  }
  const host = parseHost(word.slice(0, colon));
  if (!host.ok) return host;
  const port = parsePort(word.slice(colon + 1));
  return port.ok ? parsed({ host: host.value, port: port.value }) : port;
}

/** Parses a port in plain decimal, 1 to 65535. */
export function parsePort(text: string): Parsed<number> {
  const port = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return parsed(port);
  const plain = /^0+[1-9][0-9]{0,4}$/.test(text) ? `write ${Number(text)}` : undefined;
  return refused(`${quote(text)} is not a port`, "a number from 1 to 65535", plain);
}

/** The canonical text of a host, without brackets. */
export function renderHost(host: Host): string {
  return host.kind === "name" ? host.name : host.address.text;
}

/**
 * Recognises names that need no work at all, as nearly all are that a program asks for: one pass over
 * the characters instead of several patterns. Says no when in doubt (A-labels, a last label with a
 * digit in front); the rules themselves stand in `parseHostName`.
 */
function isCanonicalName(text: string): boolean {
  if (text.length === 0 || text.length > 253) return false;
  let start = 0;
  let previous: number = DOT;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (previous === DOT || previous === HYPHEN || at - start > 63) return false;
      start = at + 1;
    } else if (code === HYPHEN) {
      if (previous === DOT || (at === start + 3 && text.startsWith("xn-", start))) return false;
    } else if (!(code >= LOWER_A && code <= LOWER_Z) && !(code >= DIGIT_0 && code <= DIGIT_9) && code !== UNDERSCORE) {
      return false;
    }
    previous = code;
  }
  const first = text.charCodeAt(start);
  return previous !== DOT && previous !== HYPHEN && text.length - start <= 63 && first >= LOWER_A && first <= LOWER_Z;
}

function parseIpv6Host(word: string): Parsed<Host> {
  const bracketed = /^\[(?<inner>[^[\]]*)\]$/.exec(word)?.groups?.["inner"];
  const inner = bracketed ?? word;
  // RFC 4007: the zone says which interface of this machine; it is no part of the address that is judged.
  const unzoned = inner.replace(/%[a-z0-9._~-]+$/i, "");
  const address = unzoned.includes(":") ? parseAddress(unzoned) : undefined;
  if (address?.ok === true) return parsed({ kind: "address", address: address.value });
  return refused(`${quote(word)} is not a host`, "a name, an IPv4 address, or an IPv6 address such as [2001:db8::1]");
}

function checkAsciiName(ascii: string, text: string): Parsed<string> {
  const name = ascii.endsWith(".") ? ascii.slice(0, -1) : ascii;
  if (name === "") return refused(`${quote(text)} is not a host name`, EXPECTED_NAME);
  if (name.length > 253) return refused(`${quote(text)} has ${name.length} bytes`, "a name of at most 253 bytes");
  if (ENDS_IN_NUMBER.test(name)) {
    const plain = domainToASCII(name);
    const fix = plain === "" ? undefined : `write ${plain} if you mean this address`;
    return refused(`${quote(text)} ends in a number`, "a host name, or an address as four decimal numbers", fix);
  }
  for (const label of name.split(".")) {
    const complaint = refuseLabel(label, name, text);
    if (complaint !== undefined) return complaint;
  }
  return parsed(name);
}

function refuseLabel(label: string, name: string, text: string): Refusal | undefined {
  if (label === "") {
    const fix = name.split(".").filter((part) => part !== "").join(".");
    return refused(`${quote(text)} has an empty label`, "one dot between two labels", fix === "" ? undefined : `write ${fix}`);
  }
  if (label.length > 63) return refused(`${quote(text)} has a label of ${label.length} bytes`, "labels of at most 63 bytes");
  if (!LABEL.test(label)) return refused(`${quote(text)} has a label that begins or ends with a hyphen`, EXPECTED_NAME);
  // An xn-- label that does not survive decoding would be shown to the user as something it is not.
  if (label.startsWith("xn--") && !isALabel(label)) return refused(`${quote(text)} has the invalid label ${quote(label)}`, EXPECTED_NAME);
  return undefined;
}

function isALabel(label: string): boolean {
  const unicode = domainToUnicode(label);
  return unicode !== "" && unicode !== label && domainToASCII(unicode) === label;
}

function refuseCharacters(word: string, text: string): Refusal | undefined {
  if (word === "") return refused("the host is empty", EXPECTED_NAME);
  if (/\p{Cc}/u.test(word)) return refused(`${quote(text)} holds a control character`, EXPECTED_NAME);
  if (/\s/u.test(word)) return refused(`${quote(text)} holds a space`, EXPECTED_NAME);
  // UTS #46 drops these silently; two names that look alike would then be one.
  if (/\p{Default_Ignorable_Code_Point}/u.test(word)) return refused(`${quote(text)} holds an invisible character`, EXPECTED_NAME);
  // oxlint-disable-next-line no-control-regex -- the ASCII range is meant
  const bad = /[\u0000-\u007f]/u.exec(word.replaceAll(/[a-z0-9_.-]/g, ""))?.[0];
  return bad === undefined ? undefined : refused(`${quote(text)} holds the character ${quote(bad)}`, EXPECTED_NAME);
}
