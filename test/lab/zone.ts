import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DnsBehaviour } from "./control-schema.ts";
import { ARCHIVE_HOST, LAB_SUFFIX, SPECIAL_NAMES } from "./special-names.ts";

/** The names of the lab's internet and their addresses. */
export type Zone = {
  /** The record of a name in canonical form (lower case, no trailing dot); wildcards included. */
  find(name: string): DnsBehaviour | undefined;
  /** Every name that is written down, wildcards as `*.suffix`; synthetic names are not among them. */
  readonly names: readonly string[];
};

const FIRST_POOL_OFFSET = 32;
const MOST_POOL_NAMES = 6 * 256;
const MOST_SYNTHETIC = 60_000;

/**
 * Gives every name of `names` an address pair that depends only on the sorted list, keeps the special
 * names, and knows `n0001.lab-names.example` and onwards (up to 60000) by rule.
 */
export function buildZone(names: readonly string[]): Zone {
  const records = new Map<string, DnsBehaviour>(Object.entries(SPECIAL_NAMES));
  const plain = [...new Set([ARCHIVE_HOST, ...names].map(canonicalName))].filter((name) => !records.has(name)).toSorted();
  if (plain.length > MOST_POOL_NAMES) {
    throw new RangeError(`the lab's pool has ${MOST_POOL_NAMES} addresses, ${plain.length} names were given; use n0001.${LAB_SUFFIX} …`);
  }
  for (const [index, name] of plain.entries()) records.set(name, poolRecord(index));
  return { names: [...records.keys()], find: (name) => findRecord(records, name) };
}

/** The name `n0001.lab-names.example` for 1, each with an address pair of its own. */
export function syntheticName(number: number): string {
  return `n${String(number).padStart(4, "0")}.${LAB_SUFFIX}`;
}

/** Host names written in the shipped bash lists, `**.` and `*.` as wildcards; reads the disk. */
export function readListedNames(directory: string): string[] {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sh"));
  return files.flatMap((file) => listedNames(readFileSync(join(directory, file), "utf8")));
}

/** Words of a bash list that look like host names. The lab needs no more exactness than that. */
export function listedNames(text: string): string[] {
  const words = text.replaceAll(/(^|\s)#.*$/gm, "").match(/[\w*][\w.*-]*\.[a-z][a-z0-9-]+/gi) ?? [];
  return words.flatMap((word) => (word.startsWith("**.") ? [word.slice(3), word.slice(1)] : [word]));
}

/** Lower case without the trailing dot. */
export function canonicalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

function findRecord(records: ReadonlyMap<string, DnsBehaviour>, name: string): DnsBehaviour | undefined {
  const exact = records.get(name) ?? syntheticRecord(name);
  if (exact !== undefined) return exact;
  for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const wildcard = records.get(`*${name.slice(dot)}`);
    if (wildcard !== undefined) return wildcard;
  }
  return undefined;
}

function poolRecord(index: number): DnsBehaviour {
  const offset = FIRST_POOL_OFFSET + index;
  // 93.184.217.0 and 93.184.220.0/22 belong to special names.
  const third = [216, 218, 219, 224, 225, 226, 227][Math.floor(offset / 256)];
  return { a: [`93.184.${third}.${offset % 256}`], aaaa: [`2606:2800:220:10::${(offset + 1).toString(16)}`] };
}

function syntheticRecord(name: string): DnsBehaviour | undefined {
  const number = Number(/^n(\d{4,5})\.lab-names\.example$/.exec(name)?.[1] ?? 0);
  if (number < 1 || number > MOST_SYNTHETIC) return undefined;
  return { a: [`93.185.${number >> 8}.${number & 255}`], aaaa: [`2606:2800:221::${number.toString(16)}`] };
}
