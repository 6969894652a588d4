import { rangeContains, rangeCovers } from "./address.ts";
import { parseTarget, renderTarget, type Entry, type EntryTarget } from "./entry.ts";
import { parseHostPort, renderHost, type Host } from "./host-name.ts";
import { parsed, quote, refused, trimBlanks, type Parsed } from "./parsed.ts";
import { coversPattern, matchesPattern, refuseUrl } from "./pattern.ts";

/** A host to deny on every port: a canonical pattern or range, or a glob that is neither (`api.*.com`). */
export type Block = EntryTarget | { kind: "glob"; glob: string };

/** Globs are tried one after the other, so their number is bounded; patterns and ranges are not. */
export const MAX_GLOBS = 64;

/**
 * Parses a block entry. `*.x` also denies the apex and is read as `**.x`. In any other place a `*`
 * stands for any characters, in names and in addresses. A deny list may match too much, so blocks of any
 * size are taken, and wildcards over public suffixes.
 */
export function parseBlock(text: string): Parsed<Block> {
  const word = trimBlanks(text).toLowerCase();
  const target = parseTarget(word, "list");
  if (target.ok) return target;
  const misplaced = refuseUrl(word);
  if (misplaced !== undefined) return misplaced;
  if (/^[^:]+:[0-9,]+$/.test(word)) {
    return refused(`${quote(text)} names ports`, "a host alone; a block holds for all ports", `write ${word.slice(0, word.indexOf(":"))}`);
  }
  if (/^\*\*?\.[a-z0-9-]+$/.test(word)) return parsed({ kind: "pattern", pattern: { kind: "apex-and-below", suffix: word.slice(word.indexOf(".") + 1) } });
  if (/^[a-z0-9_.*-]*\*[a-z0-9_.*-]*$/.test(word)) return parsed({ kind: "glob", glob: word });
  const host = parseHostPort(word);
  if (host.ok && host.value.host.kind === "name") return parsed({ kind: "pattern", pattern: { kind: "exact", name: host.value.host.name } });
  return target;
}

/** The canonical text of a block. */
export function renderBlock(block: Block): string {
  return block.kind === "glob" ? block.glob : renderTarget(block);
}

/** Tells whether the block denies this host. */
export function blocksHost(block: Block, host: Host): boolean {
  if (block.kind === "glob") return matchesGlob(block.glob, renderHost(host));
  if (block.kind === "range") return host.kind === "address" && rangeContains(block.range, host.address);
  return host.kind === "name" && matchesPattern(block.pattern, host.name);
}

/** Tells whether the block leaves nothing of the entry, so that the entry is removed from the list. */
export function removesEntry(block: Block, { target }: Entry): boolean {
  if (block.kind === "glob") return matchesGlob(block.glob, renderTarget(target));
  if (block.kind === "range") return target.kind === "range" && rangeCovers(block.range, target.range);
  return target.kind === "pattern" && coversPattern(block.pattern, target.pattern);
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
