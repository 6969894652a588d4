import { parseRange, rangeContains, rangeCovers } from "./address.ts";
import { parseTarget, renderTarget, type Entry, type EntryTarget } from "./entry.ts";
import { parseHostPort, type Host } from "./host-name.ts";
import { parsed, quote, refused, trimBlanks, type Parsed } from "./parsed.ts";
import { coversPattern, matchesPattern, refuseUrl } from "./pattern.ts";

/** A host to deny on every port: a canonical pattern or range, or a glob over names that is neither (`api.*.com`). The glob `*` is everything, addresses too. */
export type Block = EntryTarget | { kind: "glob"; glob: string };

/** Globs are tried one after the other, so their number is bounded; patterns and ranges are not. */
export const MAX_GLOBS = 64;

/**
 * Parses a block entry. `*.x` also denies the apex and is read as `**.x`. In any other place of a name a
 * `*` stands for any characters. Addresses are blocked by CIDR blocks; `10.0.*` is read as one, since its
 * stars stand on octet borders. A deny list may match too much, so blocks of any size are taken, and
 * wildcards over public suffixes.
 */
export function parseBlock(text: string): Parsed<Block> {
  const word = trimBlanks(text).toLowerCase();
  if (/^\*+$/.test(word)) return parsed({ kind: "glob", glob: "*" });
  const target = parseTarget(word, "list");
  if (target.ok) return target;
  const misplaced = refuseUrl(word);
  if (misplaced !== undefined) return misplaced;
  if (/^[^:]+:[0-9,]+$/.test(word)) {
    return refused(`${quote(word)} names ports`, "a host alone; a block holds for all ports", `write ${word.slice(0, word.indexOf(":"))}`);
  }
  const addresses = parseAddressGlob(word);
  if (addresses !== undefined) return addresses;
  if (/^\*\*?\.[a-z0-9-]+$/.test(word)) return parsed({ kind: "pattern", pattern: { kind: "apex-and-below", suffix: word.slice(word.indexOf(".") + 1) } });
  if (/^[a-z0-9_.*-]*\*[a-z0-9_.*-]*$/.test(word)) return parsed({ kind: "glob", glob: word });
  const host = parseHostPort(word);
  if (host.ok && host.value.host.kind === "name") return parsed({ kind: "pattern", pattern: { kind: "exact", name: host.value.host.name } });
  return target;
}

/** Tells whether the block denies every host, names and addresses alike. */
export function blocksEverything(block: Block): boolean {
  return block.kind === "glob" && block.glob === "*";
}

/** The canonical text of a block. */
export function renderBlock(block: Block): string {
  return block.kind === "glob" ? block.glob : renderTarget(block);
}

/** Tells whether the block denies this host. */
export function blocksHost(block: Block, host: Host): boolean {
  if (blocksEverything(block)) return true;
  if (block.kind === "glob") return host.kind === "name" && matchesGlob(block.glob, host.name);
  if (block.kind === "range") return host.kind === "address" && rangeContains(block.range, host.address);
  return host.kind === "name" && matchesPattern(block.pattern, host.name);
}

/** Tells whether the block leaves nothing of the entry, so that the entry is removed from the list. */
export function removesEntry(block: Block, { target }: Entry): boolean {
  if (blocksEverything(block)) return true;
  if (block.kind === "glob") return target.kind === "pattern" && matchesGlob(block.glob, renderTarget(target));
  if (block.kind === "range") return target.kind === "range" && rangeCovers(block.range, target.range);
  return target.kind === "pattern" && coversPattern(block.pattern, target.pattern);
}

/** Reads a `*` among the numbers of an address; undefined where the word is meant as a name. */
function parseAddressGlob(word: string): Parsed<Block> | undefined {
  const isV6 = word.includes(":");
  if (!(isV6 ? /^[0-9a-f:.*[\]]+$/ : /^[0-9.*]+$/).test(word) || !word.includes("*")) return undefined;
  const groups = word.split(isV6 ? ":" : ".");
  const [total, bits] = isV6 ? ([8, 16] as const) : ([4, 8] as const);
  const fixed = groups.indexOf("*");
  const known = groups.slice(0, fixed);
  const plain = fixed > 0 && groups.length <= total && groups.slice(fixed).every((group) => group === "*") && known.every((group) => (isV6 ? /^[0-9a-f]{1,4}$/ : /^[0-9]{1,3}$/).test(group));
  const base = isV6 ? `${known.join(":")}::` : [...known, "0", "0", "0"].slice(0, total).join(".");
  const range = plain ? parseRange(`${base}/${fixed * bits}`) : undefined;
  if (range?.ok === true) return parsed({ kind: "range", range: range.value });
  return refused(`${quote(word)} is no block of addresses`, "whole numbers of an address in front of the *", `write a CIDR block, such as ${isV6 ? "2001:db8::/32" : "10.1.0.0/16"}`);
}

/** Matches `*` as any characters. Goes back to the last star only, so the time is bounded by the product of the lengths. */
export function matchesGlob(glob: string, text: string): boolean {
  let at = 0;
  let globAt = 0;
  let star = -1;
  let mark = 0;
  while (at < text.length) {
    if (glob[globAt] === "*") {
      star = globAt;
      mark = at;
      globAt += 1;
    } else if (globAt < glob.length && glob[globAt] === text[at]) {
      globAt += 1;
      at += 1;
    } else if (star >= 0) {
      mark += 1;
      at = mark;
      globAt = star + 1;
    } else {
      return false;
    }
  }
  return /^\**$/.test(glob.slice(globAt));
}
