import { parseHost, parseHostName, renderHost } from "./host-name.ts";
import { parsed, quote, refused, trimBlanks, type Parsed, type Refusal } from "./parsed.ts";

/**
 * The four canonical patterns over host names: that name only (`example.com`), one or more labels
 * below it (`*.example.com`), the apex and everything below it (`**.example.com`), everything (`*`).
 * No pattern matches an IP literal.
 */
export type Pattern =
  | { kind: "exact"; name: string }
  | { kind: "below"; suffix: string }
  | { kind: "apex-and-below"; suffix: string }
  | { kind: "all" };

/**
 * Where a pattern was written, because `*.x` means two things: in lists that users keep in
 * `allow_hosts`, `allow_file` and `allowed_domains` it includes the apex (`list`, read as `**.x`); in
 * ordered `rules` and in `allowlists/*.sh` it does not.
 */
export type Surface = "list" | "rules" | "allowlist-file";

/** What holds nothing of a URL: nearly all words of a long list. */
const PLAIN_WORD = /^[\w.*-]+$/;
const EXPECTED = "example.com, *.example.com (below it) or **.example.com (it and below)";

/**
 * Parses a pattern into canonical form. Refuses with a corrected form: URLs, paths, user info,
 * wildcards anywhere but in front, dotless names other than localhost, wildcards over a top-level
 * domain, and `*` outside ordered rules. Longer public suffixes (`*.co.uk`) are refused by
 * `refuseOpenWildcard`, apart because its list is large.
 */
export function parsePattern(text: string, surface: Surface): Parsed<Pattern> {
  const word = trimBlanks(text);
  const misplaced = (PLAIN_WORD.test(word) ? undefined : refuseUrl(word)) ?? refuseAll(word, surface);
  if (misplaced !== undefined) return misplaced;
  if (word === "*") return parsed({ kind: "all" });
  const wildcard = /^(?<stars>\*\*?)\.(?<suffix>.+)$/s.exec(word)?.groups;
  const suffixText = wildcard?.["suffix"] ?? word;
  if (suffixText.includes("*")) return refuseStars(word, suffixText);
  const name = parseHostName(suffixText);
  if (!name.ok) return name;
  if (wildcard === undefined) return parseExact(name.value);
  if (!name.value.includes(".")) {
    return refused(`${quote(word)} opens a whole top-level domain`, "a wildcard below a registered domain", `name the domain, such as *.example.${name.value}`);
  }
  const apexIncluded = wildcard["stars"] === "**" || surface === "list";
  return parsed({ kind: apexIncluded ? "apex-and-below" : "below", suffix: name.value });
}

/** The canonical text of a pattern. */
export function renderPattern(pattern: Pattern): string {
  if (pattern.kind === "all") return "*";
  if (pattern.kind === "exact") return pattern.name;
  return `${pattern.kind === "below" ? "*" : "**"}.${pattern.suffix}`;
}

/** Tells whether the pattern matches a canonical host name. */
export function matchesPattern(pattern: Pattern, name: string): boolean {
  if (pattern.kind === "all") return true;
  if (pattern.kind === "exact") return name === pattern.name;
  return name.endsWith(`.${pattern.suffix}`) || (pattern.kind === "apex-and-below" && name === pattern.suffix);
}

/** Tells whether `outer` matches every name that `inner` matches. */
export function coversPattern(outer: Pattern, inner: Pattern): boolean {
  if (outer.kind === "all") return true;
  if (inner.kind === "all") return false;
  if (inner.kind === "exact") return matchesPattern(outer, inner.name);
  if (outer.kind === "exact") return false;
  const strictlyBelow = inner.suffix.endsWith(`.${outer.suffix}`);
  const same = inner.suffix === outer.suffix && (outer.kind === "apex-and-below" || inner.kind === "below");
  return strictlyBelow || same;
}

/** The domain below which the pattern opens everything, or undefined for a single name and for `*`. */
export function wildcardSuffix(pattern: Pattern): string | undefined {
  return pattern.kind === "below" || pattern.kind === "apex-and-below" ? pattern.suffix : undefined;
}

/** Refuses what belongs to a URL and not to a host: scheme, user info, path, query. `keep` is put in front of the corrected form. */
export function refuseUrl(word: string, keep = ""): Refusal | undefined {
  if (word === "") return refused("the entry is empty", EXPECTED, "remove it or write a host");
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(word)?.[0] ?? "";
  const rest = word.slice(scheme.length);
  const authority = rest.replace(/[/?#\\].*$/s, "");
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  const fix = host === "" ? undefined : `write ${keep}${host}`;
  if (scheme !== "") return refused(`${quote(word)} has the scheme ${scheme.toLowerCase()}`, "a host without a scheme", fix);
  if (authority.includes("@")) return refused(`${quote(word)} has user info`, "a host without a user", fix);
  if (authority !== rest) return refused(`${quote(word)} has a path`, "a host without a path", fix);
  return undefined;
}

function refuseAll(word: string, surface: Surface): Refusal | undefined {
  const everything = word === "*" || word === "**" || /^(\*\*?\.)+\*\*?$/.test(word);
  if (!everything || (word === "*" && surface === "rules")) return undefined;
  const fix = surface === "rules" ? "write *" : "name the hosts, or start once with --full-network";
  return refused(`${quote(word)} opens every host`, "named hosts", fix);
}

function refuseStars(word: string, suffixText: string): Refusal {
  const what = `${quote(word)} has a wildcard that is not the first label`;
  // `*foo.com` reads like a wildcard in front of foo.com; `a.*.b` can only mean everything below b.
  const tail = suffixText.slice(suffixText.lastIndexOf("*") + 1).replace(/^\.+/, "");
  const host = parseHost(tail);
  const suffix = host.ok && host.value.kind === "name" ? renderHost(host.value) : "";
  if (!suffix.includes(".")) return refused(what, EXPECTED);
  const fix = word.startsWith("*") && !suffixText.slice(1).includes("*") ? `write *.${suffix} or ${suffix}` : `write **.${suffix} or list the names`;
  return refused(what, EXPECTED, fix);
}

function parseExact(name: string): Parsed<Pattern> {
  if (name.includes(".") || name === "localhost") return parsed({ kind: "exact", name });
  return refused(`${quote(name)} has no dot`, "a full name", `write it in full, such as ${name}.example.com`);
}
