import { parseRange, rangeCovers, type Range } from "./address.ts";
import { specialRangesIn } from "./address-class.ts";
import { parsePort } from "./host-name.ts";
import { parsed, quote, refused, trimBlanks, type Parsed, type Refusal } from "./parsed.ts";
import { parsePattern, refuseUrl, renderPattern, type Pattern, type Surface } from "./pattern.ts";

/**
 * What speaks on the ports of an entry: `web` is TLS or HTTP, where the name can be read from the
 * connection; `tcp` is anything else (SSH on 443).
 */
type Protocol = "web" | "tcp";

export type EntryTarget = { kind: "pattern"; pattern: Pattern } | { kind: "range"; range: Range };

/** One line of an allowlist: where to, on which ports (ascending, at least one). */
export type Entry = { target: EntryTarget; ports: readonly number[]; protocol: Protocol };

/** Port of an entry that names none. */
const DEFAULT_PORT = 443;

// Everything that is meant as an address or block, with or without ports; a slash in it is no path.
const RANGE_WORD = /^(?:[0-9.]+\/[0-9]*(?::[0-9,]*)?|\[[^[\]]*\](?:\/[0-9]*)?(?::[0-9,]*)?|[0-9a-f]*:[0-9a-f.]*:[0-9a-f:.]*(?:\/[0-9]*)?)$/i;
const MIN_PREFIX = { 4: 8, 6: 19 } as const;

/**
 * Parses one entry: `host`, `*.host`, `**.host`, an address or CIDR block (IPv6 with ports in
 * brackets), each with `:port` or `:port,port`; `http://host` for 80 and 443; `tcp://host:port` for
 * ports that speak neither TLS nor HTTP. Blocks larger than /8 (IPv4) or /19 (IPv6) are refused, and
 * blocks that mix public and special-purpose addresses.
 */
export function parseEntry(text: string, surface: Surface): Parsed<Entry> {
  const word = trimBlanks(text);
  const scheme = /^(?<name>tcp|http):\/\//i.exec(word)?.groups?.["name"]?.toLowerCase();
  const rest = scheme === undefined ? word : word.slice(scheme.length + 3);
  const complaint = RANGE_WORD.test(rest) ? undefined : refuseUrl(rest, scheme === undefined ? "" : `${scheme}://`);
  if (complaint !== undefined) return complaint;
  const split = splitPorts(rest);
  if (!split.ok) return split;
  const { hostText, ports } = split.value;
  const target = parseTarget(hostText, surface);
  if (!target.ok) return target;
  const unsafe = target.value.kind === "range" ? (refuseWideRange(target.value.range) ?? refuseMixedRange(target.value.range)) : undefined;
  if (unsafe !== undefined) return unsafe;
  const named = ports.length > 0;
  if (scheme === "http" && named) {
    return refused(`${quote(word)} has a scheme and a port`, "one of the two", `write ${rest}`);
  }
  if (scheme === "tcp" && !named) {
    return refused(`${quote(word)} names no port`, "the ports that speak neither TLS nor HTTP", `write ${word}:PORT`);
  }
  const implied = scheme === "http" ? [80, DEFAULT_PORT] : [DEFAULT_PORT];
  return parsed({ target: target.value, ports: named ? ports : implied, protocol: scheme === "tcp" ? "tcp" : "web" });
}

/** The canonical text of an entry. Parsed again (on a surface that is not `list`) it gives the same entry. */
export function renderEntry({ target, ports, protocol }: Entry): string {
  const single = protocol === "web" && ports.length === 1 && ports[0] === DEFAULT_PORT;
  const host = renderTarget(target);
  const bracketed = target.kind === "range" && target.range.family === 6 && !single ? `[${host}]` : host;
  return `${protocol === "tcp" ? "tcp://" : ""}${bracketed}${single ? "" : `:${ports.join(",")}`}`;
}

/** The canonical text of a target alone: pattern, address or CIDR block. */
export function renderTarget(target: EntryTarget): string {
  return target.kind === "range" ? target.range.text : renderPattern(target.pattern);
}

/** Parses what an entry points to: an address or CIDR block where it looks like one, else a pattern. Any size of block is taken. */
export function parseTarget(hostText: string, surface: Surface): Parsed<EntryTarget> {
  const unbracketed = /^\[(?<inner>[^[\]]*)\](?<prefix>\/.*)?$/.exec(hostText)?.groups;
  const text = unbracketed === undefined ? hostText : `${unbracketed["inner"] ?? ""}${unbracketed["prefix"] ?? ""}`;
  if (unbracketed === undefined && !isRange(text)) {
    const pattern = parsePattern(text, surface);
    return pattern.ok ? parsed({ kind: "pattern", pattern: pattern.value }) : pattern;
  }
  const range = parseRange(text);
  return range.ok ? parsed({ kind: "range", range: range.value }) : range;
}

function isRange(text: string): boolean {
  // Without one of these only four numbers are an address, which few words of a long list are.
  if (!/[:/[]/.test(text)) return /^[0-9.]+$/.test(text) && parseRange(text).ok;
  return RANGE_WORD.test(text) || parseRange(text).ok;
}

function splitPorts(text: string): Parsed<{ hostText: string; ports: readonly number[] }> {
  const match = /^(?<host>\[[^\]]*\](?:\/[0-9]+)?|[^:]*):(?<ports>[^:\]]*)$/.exec(text)?.groups;
  const hostText = match?.["host"];
  const portsText = match?.["ports"];
  if (hostText === undefined || portsText === undefined) return parsed({ hostText: text, ports: [] });
  const ports = new Set<number>();
  for (const part of portsText.split(",")) {
    const port = parsePort(part);
    if (!port.ok) {
      const { what, expected, fix } = port.complaint;
      return refused(`${quote(text)}: ${what}`, expected, fix ?? `write ${hostText}:443 or ${hostText}:443,8443`);
    }
    ports.add(port.value);
  }
  return parsed({ hostText, ports: [...ports].toSorted((a, b) => a - b) });
}

function refuseWideRange(range: Range): Refusal | undefined {
  const minimum = MIN_PREFIX[range.family];
  if (range.prefix >= minimum) return undefined;
  const fix = range.prefix === 0 ? "name the hosts, or start once with --full-network" : `list blocks of /${minimum} or smaller`;
  return refused(`${quote(range.text)} is too large a block`, `a prefix of at least /${minimum}`, fix);
}

function refuseMixedRange(range: Range): Refusal | undefined {
  const special = specialRangesIn(range);
  const inside = special.find(({ block }) => rangeCovers(range, block) && block.text !== range.text);
  if (inside === undefined || special.some(({ block }) => rangeCovers(block, range))) return undefined;
  return refused(
    `${quote(range.text)} holds ${inside.range} (${inside.name}) beside public addresses`,
    "a block that is wholly public or wholly special-purpose",
    "list smaller blocks",
  );
}
