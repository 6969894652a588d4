import { INVARIANT_PREFIX } from "../policy/sandbox-words.ts";
import type { Intent, RiskTag } from "./request.ts";

/** A path that the resolver has found below a granted root, with no link left in it. */
export type JudgedPath = {
  /** The root's own canonical path. */
  root: string;
  /** Below the root; empty for the root itself. */
  relative: string;
  absolute: string;
  exists: boolean;
  /** Hidden or system names are in it. */
  hidden: boolean;
  /** Its directory takes `A` for `a`. */
  folding: boolean;
};

/** What is to be done. A path that no granted root holds is undefined. */
export type JudgedAction = {
  intent: Intent;
  target: JudgedPath | undefined;
  /** Of a move or a rename. */
  destination?: JudgedPath | undefined;
  /** Bytes that are read or written; undefined where nobody knows. */
  size?: number | undefined;
  /** False for what is certainly no directory; anything else is judged as one. */
  directory?: boolean | undefined;
  /** A program is written, or something becomes one. */
  executable?: boolean | undefined;
};

/** Something that the guard asks about itself, whatever the rules say. */
export type Invariant = { id: string; reason: string };

/** The risks that are always asked about, the gravest first, each with its reason. */
const ASKED = [
  ["delete", "what is deleted is gone"],
  ["move", "a move takes a file away from where it is expected"],
  ["rename", "a new name takes a file away from where it is expected"],
  ["overwrite", "what the file holds now is lost"],
  ["large", "the file is large, or nobody knows how large"],
] as const satisfies readonly (readonly [RiskTag, string])[];

/** Lists the invariants that ask about operations with these risks. */
export function judgeInvariants(tags: readonly RiskTag[]): Invariant[] {
  return ASKED.filter(([tag]) => tags.includes(tag)).map(([tag, reason]) => ({ id: `${INVARIANT_PREFIX}${tag}`, reason }));
}

/** Lists what makes an operation risky. A size that nobody knows may be any. */
export function listTags({ intent, target, destination, size, executable }: JudgedAction, large: number): RiskTag[] {
  const carries = intent === "read" || intent === "write" || intent === "create";
  const replaces = destination?.exists === true || ((intent === "write" || intent === "create") && target?.exists === true);
  const found: readonly (readonly [RiskTag, boolean])[] = [
    ["delete", intent === "delete"],
    ["move", intent === "move"],
    ["rename", intent === "rename"],
    ["overwrite", replaces],
    ["large", carries && !(size !== undefined && size < large)],
    ["hidden", target?.hidden === true || destination?.hidden === true],
    ["executable", executable === true],
  ];
  return found.flatMap(([tag, holds]) => (holds ? [tag] : []));
}

/**
 * Tells whether the parts of a path fit together: one that claims a root and lies elsewhere is outside. The resolver
 * makes no such path; what it may make some day shall be denied.
 */
export function isWellPlaced(path: JudgedPath | undefined): path is JudgedPath {
  if (path === undefined) return false;
  const { root, relative, absolute } = path;
  const names = relative === "" ? [] : relative.split("/");
  return root.startsWith("/") && absolute === [root === "/" ? "" : root, ...names].join("/") && !names.some((name) => name === "" || name === "." || name === "..");
}
