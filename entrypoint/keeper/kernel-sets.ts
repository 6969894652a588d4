import { FAMILIES, familyOf, nameSets, type Plan, type SetNames } from "../../firewall/rule.ts";
import { renderNextSets, renderSwaps } from "../../firewall/render-ipset.ts";
import { nameCutBlocks, renderNftLiterals } from "../../firewall/render-nft.ts";
import { MAX_ERRORS, SetChild } from "./set-child.ts";
import { saysFull, SET_DIALECTS } from "./set-dialect.ts";

/** One change of the learned or the cut set. `range` is an address or CIDR block, `lifeS` its life in seconds. */
export type SetChange =
  | { op: "add"; set: Exclude<keyof SetNames, "literal">; range: string; port: number; lifeS: number }
  | { op: "delete"; set: Exclude<keyof SetNames, "literal">; range: string; port: number };

export type KernelSets = {
  /** Adds all, or says why not; no more than the first `taken` may be there then. */
  addAll: (additions: readonly SetChange[]) => Promise<{ errors: string[]; taken: number }>;
  /** Puts changes in force, in order; returns one sentence for each that the kernel refused. */
  change: (changes: readonly SetChange[]) => Promise<string[]>;
  /** Puts the literal sets of a plan in place of those in force, whole or not at all; the sentences say why not. One at a time: two at once would take each other's half-filled sets away. */
  replaceLiterals: (plan: Pick<Plan, "sets">) => Promise<string[]>;
  /** Empties the cut sets. */
  flushCut: () => Promise<string[]>;
};

const TABLE = "inet agentbox";
/** So many elements are one transaction of nft, which costs four times less than one each. */
const BATCH = 100;

/** Opens the way into the kernel's sets. `onRestart` is called when the program that writes them was lost and is back. */
export function openKernelSets(backend: "ipset" | "nft", onRestart: () => void): KernelSets {
  const child = new SetChild(SET_DIALECTS[backend], onRestart);
  return backend === "ipset" ? openIpset(child) : openNft(child);
}

function openIpset(child: SetChild): KernelSets {
  const change: KernelSets["change"] = (changes) => child.apply(changes.map(renderIpsetChange));
  return {
    change,
    addAll: async (additions) => ({ errors: await change(additions), taken: additions.length }),
    replaceLiterals: async (plan) => {
      const errors = await child.apply(renderNextSets(plan));
      return errors.length > 0 ? errors : child.apply(renderSwaps(plan));
    },
    flushCut: () => child.apply(FAMILIES.map((family) => `flush ${nameSets(family).cut}`)),
  };
}

function openNft(child: SetChild): KernelSets {
  /** One transaction, which comes to nothing when an element finds no room. One that was to go and is gone fails all of it too: then each has its own. */
  const commit = async (batch: readonly SetChange[]): Promise<{ errors: string[]; taken: number }> => {
    const errors = await child.apply([renderNftBatch(batch)]);
    const full = errors.filter(saysFull);
    if (full.length > 0) return { errors: full, taken: 0 };
    return { errors: errors.length === 0 || batch.length === 1 ? errors : await child.apply(batch.map((each) => renderNftBatch([each]))), taken: batch.length };
  };
  return {
    change: async (changes) => {
      const errors: string[] = [];
      for (const batch of batchChanges(changes)) errors.push(...(await commit(batch)).errors);
      return errors.slice(0, MAX_ERRORS);
    },
    addAll: async (additions) => {
      let sum = 0;
      for (const batch of batchChanges(additions)) {
        const { errors, taken } = await commit(batch);
        sum += taken;
        if (errors.length > 0) return { errors, taken: sum };
      }
      return { errors: [], taken: sum };
    },
    replaceLiterals: (plan) => child.apply([renderNftLiterals(plan)]),
    flushCut: () => child.apply(FAMILIES.flatMap((family) => [nameSets(family).cut, nameCutBlocks(family)].map((set) => `flush set ${TABLE} ${set}`))),
  };
}

function renderIpsetChange(change: SetChange): string {
  const element = `${nameSet(change)} ${change.range},tcp:${change.port}`;
  return change.op === "add" ? `add ${element} timeout ${change.lifeS}` : `del ${element}`;
}

/** Changes of one kind and set that follow each other. */
function batchChanges(changes: readonly SetChange[]): SetChange[][] {
  const batches: SetChange[][] = [];
  for (const change of changes) {
    const last = batches.at(-1);
    const [first] = last ?? [];
    if (last === undefined || first === undefined || last.length === BATCH || first.op !== change.op || nameNftSet(first) !== nameNftSet(change)) batches.push([change]);
    else last.push(change);
  }
  return batches;
}

/**
 * One transaction, a line. Adding what is there keeps its old life, so it is taken out first, and only what is there can
 * be; what is cut has one life for all. Taking out has to work in a full set too, so it adds nothing: what is not there is no error (`SET_DIALECTS`).
 */
function renderNftBatch(batch: readonly SetChange[]): string {
  const [first] = batch;
  if (first === undefined) return "";
  const elements = batch.map(({ range, port }) => `${range} . tcp . ${port}`);
  const render = (op: SetChange["op"], texts: readonly string[]): string => `${op} element ${TABLE} ${nameNftSet(first)} { ${texts.join(", ")} }`;
  const gone = render("delete", elements);
  if (first.op === "delete") return gone;
  const fresh = batch.flatMap((change, index) => (change.op === "add" ? [`${elements[index]} timeout ${change.lifeS}s`] : []));
  return [...(first.set === "cut" ? [] : [render("add", elements), gone]), render("add", fresh)].join("; ");
}

function nameNftSet(change: SetChange): string {
  return change.set === "cut" && change.range.includes("/") ? nameCutBlocks(familyOf(change.range)) : nameSet(change);
}

function nameSet({ set, range }: SetChange): string {
  return nameSets(familyOf(range))[set];
}
