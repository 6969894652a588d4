import { rangeCovers, parseRange, type Range } from "./address.ts";
import { classifyAddress, specialRangesIn } from "./address-class.ts";
import { addressFromValue } from "./address.ts";
import { renderEntry } from "./entry.ts";
import type { Complaint, Place } from "./errors.ts";
import { parseHost } from "./host-name.ts";
import { parsed, quote, refused, trimBlanks, type Parsed } from "./parsed.ts";
import type { PrivateEntry } from "./policy.ts";
import type { PrivateHost } from "./policy-document.ts";

const HOSTS_LABEL = "private";
const RANGES_LABEL = "allow_private";
const EXPECTED_HOST = "one host name, such as db or host.docker.internal";

/**
 * Parses names that may lead to private addresses. Dotless names are accepted here and nowhere else;
 * wildcards, addresses and localhost are not. The same name twice is one entry with all ports.
 */
export function parsePrivateHosts(written: readonly PrivateHost[]): { hosts: PrivateEntry[]; complaints: Complaint[] } {
  const complaints: Complaint[] = [];
  const hosts = new Map<string, PrivateEntry>();
  for (const { host, ports, place } of written) {
    const name = parsePrivateName(host);
    if (!name.ok) {
      complaints.push({ ...name.complaint, place: place ?? { file: HOSTS_LABEL } });
      continue;
    }
    const earlier = hosts.get(name.value);
    const all = [...new Set([...(earlier?.ports ?? []), ...ports])].toSorted((a, b) => a - b);
    const text = renderEntry({ target: { kind: "pattern", pattern: { kind: "exact", name: name.value } }, ports: all, protocol: "web" });
    hosts.set(name.value, { name: name.value, ports: all, text, origins: [...(earlier?.origins ?? []), { label: place?.file ?? HOSTS_LABEL, text: host, place }] });
  }
  return { hosts: [...hosts.values()], complaints };
}

function parsePrivateName(text: string): Parsed<string> {
  const word = trimBlanks(text);
  if (word.includes("*")) return refused(`${quote(text)} is private and has a wildcard`, EXPECTED_HOST, "name each host");
  const host = parseHost(word);
  if (!host.ok) return host;
  if (host.value.kind === "address") return refused(`${quote(text)} is an address`, EXPECTED_HOST, "list the address itself, without private = true");
  const { name } = host.value;
  if (name === "localhost" || name.endsWith(".localhost")) return refused(`${quote(text)} is the box itself`, EXPECTED_HOST, "remove it; for the host's own services write host.docker.internal");
  return parsed(name);
}

/**
 * Parses the blocks of `allow_private`. Each must be special-purpose as a whole: a public block is a
 * question of what may be reached and belongs among the hosts.
 */
export function parseAllowPrivate(words: readonly { text: string; place?: Place | undefined }[]): { ranges: Range[]; complaints: Complaint[]; warnings: string[] } {
  const complaints: Complaint[] = [];
  const ranges: Range[] = [];
  const warnings: string[] = [];
  for (const { text, place } of words) {
    const range = parseRange(trimBlanks(text));
    const refusal = range.ok ? refusePublic(range.value) : range;
    if (refusal !== undefined) complaints.push({ ...refusal.complaint, place: place ?? { file: RANGES_LABEL } });
    if (!range.ok || refusal !== undefined) continue;
    ranges.push(range.value);
    if (specialRangesIn(range.value).some(({ name }) => name === "cloud metadata")) {
      warnings.push(`${RANGES_LABEL} = ${quote(range.value.text)} lets allowed names lead to the machine's cloud metadata, which may hold its secrets`);
    }
  }
  return { ranges, complaints, warnings };
}

function refusePublic(range: Range): ReturnType<typeof refused> | undefined {
  const single = range.prefix === (range.family === 4 ? 32 : 128);
  const special = single
    ? classifyAddress(addressFromValue(range.family, range.base)).kind === "special"
    : specialRangesIn(range).some(({ block }) => rangeCovers(block, range));
  if (special) return undefined;
  return refused(`${quote(range.text)} is not a private block`, "a special-purpose block or a part of one, such as 10.0.0.0/8", "list public addresses in allow_hosts");
}
