import { FAMILIES, familyOf, nameSets, type Plan, type SetNames } from "../../firewall/rule.ts";
import { renderNextSets, renderSwaps } from "../../firewall/render-ipset.ts";
import { renderNftLiterals } from "../../firewall/render-nft.ts";
import { SetChild, type SetDialect } from "./set-child.ts";

/** One change of the learned or the cut set. `range` is an address or CIDR block, `lifeS` its life in seconds. */
export type SetChange =
  | { op: "add"; set: Exclude<keyof SetNames, "literal">; range: string; port: number; lifeS: number }
  | { op: "delete"; set: Exclude<keyof SetNames, "literal">; range: string; port: number };

export type KernelSets = {
  /** Puts changes in force, in order; returns one sentence for each that the kernel refused. */
  change: (changes: readonly SetChange[]) => Promise<string[]>;
  /** Puts the literal sets of a plan in place of those in force, whole or not at all; the sentences say why not. */
  replaceLiterals: (plan: Pick<Plan, "sets">) => Promise<string[]>;
  /** Empties the cut sets. */
  flushCut: () => Promise<string[]>;
};

// A documentation address (RFC 5737): nobody's, and asking for it changes nothing.
const SENTINEL = "192.0.2.1,tcp:9";
const TABLE = "inet agentbox";

const DIALECTS: Readonly<Record<"ipset" | "nft", SetDialect>> = {
  ipset: { argv: ["ipset", "-exist", "-"], probe: `test ${nameSets(4).cut} ${SENTINEL}`, acknowledgement: /192\.0\.2\.1,tcp:9 is (?:NOT )?in set / },
  nft: { argv: ["nft", "-i"], probe: "list tables inet", acknowledgement: /^table inet agentbox$/, chatter: /^table inet / },
};

/** Opens the way into the kernel's sets. `onRestart` is called when the program that writes them was lost and is back. */
export function openKernelSets(backend: "ipset" | "nft", onRestart: () => void): KernelSets {
  const child = new SetChild(DIALECTS[backend], onRestart);
  const render = backend === "ipset" ? renderIpsetChange : renderNftChange;
  // The sets beside the live ones are filled first and swapped then: two plans at once would take each other's away.
  let earlier: Promise<unknown> = Promise.resolve();
  const replaceLiterals = async (plan: Pick<Plan, "sets">): Promise<string[]> => {
    if (backend === "nft") return child.apply([renderNftLiterals(plan)]);
    const errors = await child.apply(renderNextSets(plan));
    return errors.length > 0 ? errors : child.apply(renderSwaps(plan));
  };
  return {
    change: (changes) => child.apply(changes.map(render)),
    replaceLiterals: (plan) => {
      const replaced = earlier.then(() => replaceLiterals(plan));
      earlier = replaced.catch(() => undefined);
      return replaced;
    },
    flushCut: () => child.apply(FAMILIES.map((family) => (backend === "nft" ? `flush set ${TABLE} ${nameSets(family).cut}` : `flush ${nameSets(family).cut}`))),
  };
}

function renderIpsetChange(change: SetChange): string {
  const element = `${nameSet(change)} ${change.range},tcp:${change.port}`;
  return change.op === "add" ? `add ${element} timeout ${change.lifeS}` : `del ${element}`;
}

/** One transaction a line: adding what is there keeps its old life, so it is taken out first; and only what is there can be. */
function renderNftChange(change: SetChange): string {
  const element = (more = ""): string => `element ${TABLE} ${nameSet(change)} { ${change.range} . tcp . ${change.port}${more} }`;
  const gone = `add ${element()}; delete ${element()}`;
  return change.op === "add" ? `${gone}; add ${element(` timeout ${change.lifeS}s`)}` : gone;
}

function nameSet({ set, range }: SetChange): string {
  const family = FAMILIES.find((candidate) => candidate === familyOf(range)) ?? 4;
  return nameSets(family)[set];
}
