import type { Answer } from "dns-packet";
import type { DnsBehaviour, DnsBehaviours } from "./control-schema.ts";
import { canonicalName, type Zone } from "./zone.ts";

export type Rcode = NonNullable<DnsBehaviour["rcode"]>;

/** What the resolver does with one question. */
export type Reply = {
  rcode: Rcode;
  answers: Answer[];
  delayMs: number;
  silent: boolean;
  truncate: boolean;
  lie: "id" | "question" | undefined;
};

/** The zone, what tests ask for on top of it, and the counters of rotation and first failures. */
export type Answerer = {
  answer(question: { name: string; type: string }): Reply;
  /** Merges behaviours over the present ones; null removes one. */
  change(behaviours: DnsBehaviours): void;
  reset(): void;
};

const DEFAULT_TTL = 300;
const MOST_LINKS = 16;

/** Creates the answering half of the resolver: no sockets, no clock. */
export function createAnswerer(zone: Zone): Answerer {
  const behaviours = new Map<string, DnsBehaviour>();
  const rotations = new Map<string, number>();
  const asked = new Map<string, number>();

  function find(name: string): DnsBehaviour | undefined {
    const own = zone.find(name);
    const wildcard = parentsOf(name).map((parent) => behaviours.get(`*.${parent}`)).find((found) => found !== undefined);
    const exact = behaviours.get(name);
    const everything = behaviours.get("*");
    if (own === undefined && wildcard === undefined && exact === undefined && everything === undefined) return undefined;
    // A test that gives addresses to a name that is an alias in the zone means the addresses.
    const over = { ...everything, ...wildcard, ...exact };
    const { cname, ...addresses } = own ?? {};
    const keepsAlias = cname !== undefined && (over.a ?? over.aaaa) === undefined;
    return { ...addresses, ...(keepsAlias ? { cname } : {}), ...over };
  }

  function rotated(key: string, values: readonly string[], mode: DnsBehaviour["rotate"]): readonly string[] {
    if (mode === undefined || values.length === 0) return values;
    const turn = rotations.get(key) ?? 0;
    rotations.set(key, turn + 1);
    const order = values.map((_, index) => values[(index + turn) % values.length] ?? "");
    return mode === "one" ? order.slice(0, 1) : order;
  }

  function recordsOf(name: string, type: string, record: DnsBehaviour): Answer[] {
    const ttl = record.ttl ?? DEFAULT_TTL;
    const wants = (kind: string) => type === kind || type === "ANY";
    const addresses = (kind: "A" | "AAAA", values: readonly string[] = []) =>
      wants(kind) ? rotated(`${canonicalName(name)} ${kind}`, values, record.rotate).map((data): Answer => ({ type: kind, name, ttl, data })) : [];
    const texts = wants("TXT") ? (record.txt ?? []).map((data): Answer => ({ type: "TXT", name, ttl, data })) : [];
    return [...addresses("A", record.a), ...addresses("AAAA", record.aaaa), ...texts];
  }

  /** Follows aliases; the alias itself is the answer when CNAME is asked for. */
  function collect(asName: string, type: string): Answer[] | undefined {
    const answers: Answer[] = [];
    let name = asName;
    for (let link = 0; link < MOST_LINKS; link += 1) {
      const record = find(canonicalName(name));
      const exists = record !== undefined && hasRecords(record);
      if (!exists) return answers.length > 0 ? answers : undefined;
      if (record.cname === undefined) return [...answers, ...recordsOf(name, type, record)];
      answers.push({ type: "CNAME", name, ttl: record.ttl ?? DEFAULT_TTL, data: record.cname });
      if (type === "CNAME") return answers;
      name = record.cname;
    }
    return answers;
  }

  function answer({ name, type }: { name: string; type: string }): Reply {
    const canonical = canonicalName(name);
    const record = find(canonical) ?? {};
    const turn = (asked.get(canonical) ?? 0) + 1;
    asked.set(canonical, turn);
    const failing = record.failFirst === undefined || turn <= record.failFirst;
    const plain = { delayMs: record.delayMs ?? 0, truncate: record.truncate ?? false, lie: record.lie };
    if (failing && record.silent === true) return { ...plain, rcode: "NOERROR", answers: [], silent: true };
    const rcode = failing ? (record.rcode ?? (record.failFirst === undefined ? undefined : "SERVFAIL")) : undefined;
    if (rcode !== undefined) return { ...plain, rcode, answers: [], silent: false };
    if (type === "AXFR" || type === "IXFR") return { ...plain, rcode: "REFUSED", answers: [], silent: false };
    const answers = collect(name, type);
    return { ...plain, rcode: answers === undefined ? "NXDOMAIN" : "NOERROR", answers: answers ?? [], silent: false };
  }

  return {
    answer,
    change: (changes) => {
      for (const [key, behaviour] of Object.entries(changes)) {
        const name = canonicalName(key);
        rotations.clear();
        asked.delete(name);
        if (behaviour === null) behaviours.delete(name);
        else behaviours.set(name, behaviour);
      }
    },
    reset: () => {
      behaviours.clear();
      rotations.clear();
      asked.clear();
    },
  };
}

function hasRecords({ a, aaaa, txt, cname }: DnsBehaviour): boolean {
  return a !== undefined || aaaa !== undefined || txt !== undefined || cname !== undefined;
}

function parentsOf(name: string): string[] {
  const labels = name.split(".");
  return labels.slice(1).map((_, index) => labels.slice(index + 1).join("."));
}
