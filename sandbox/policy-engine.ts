import { hash } from "node:crypto";
import { quotePath } from "../policy/parsed.ts";
import type { Steps } from "../policy/rule-slot.ts";
import { type LocatedPath, type RulePath, SandboxRules } from "../policy/sandbox-rules.ts";
import type { SandboxRuleText } from "../policy/sandbox-schema.ts";
import { DEFAULT_LARGE, INVARIANT_PREFIX, NO_RULE_ID, parseSize } from "../policy/sandbox-words.ts";
import { ConfigError } from "../policy/errors.ts";
import { type Invariant, isWellPlaced, type JudgedAction, judgeInvariants, type JudgedPath, listTags } from "./policy-invariants.ts";
import type { Intent, RiskTag, Verdict } from "./request.ts";

export type { JudgedAction, JudgedPath } from "./policy-invariants.ts";

/** What was decided about operations that belong together: the strictest decision, and the risks of all. */
export type BatchVerdict = { decision: Verdict["decision"]; tags: readonly RiskTag[]; verdicts: readonly Verdict[] };

type EngineOptions = {
  /** `rules` of `[sandbox]`, in their order. */
  rules?: readonly SandboxRuleText[] | undefined;
  /** From this size on a file is large: `large` of `[sandbox]`. */
  large?: string | undefined;
  /** Whose rules they are, such as the path of the configuration file: a rule of another project is another rule. */
  source?: string | undefined;
};

/** What one operation does, one by one: a move also reads and deletes at its source, and makes or overwrites its destination. */
type Facet = { intent: Intent; place: LocatedPath };

const RANK = { allow: 0, confirm: 1, deny: 2 } as const;
/** From here on operations that come together are a batch. */
const BATCH = 11;

/**
 * Decides what may be done with a file that the resolver has found, in this order:
 *
 * 1. Outside of every granted root: `deny`, `invariant:outside-roots`; from one root into another: `deny`,
 *    `invariant:cross-root`. No rule is asked.
 * 2. The first rule that matches, for each thing that the operation does; the strictest of these counts. A rule
 *    that restricts what lies below a directory counts for renaming that directory, where its new name would
 *    lift it.
 * 3. A denial stands. What the guard asks about itself (delete, move, rename, overwrite, large) is `confirm`,
 *    whatever allows it; the id is that of the user's rule where that asks, too.
 * 4. Otherwise the rule, or without one `allow`, `default`: that the grant gives the intent is judged before.
 */
export class PolicyEngine {
  private readonly rules: SandboxRules;
  private readonly large: number;
  private readonly source: string;
  private readonly byId: ReadonlyMap<string, SandboxRuleText>;

  /** Throws ConfigError with all mistakes of rules that did not come through the schema. */
  constructor({ rules = [], large = DEFAULT_LARGE, source = "" }: EngineOptions = {}) {
    const size = parseSize(large);
    if (!size.ok) throw new ConfigError(size.complaint);
    this.large = size.value;
    this.rules = new SandboxRules(rules);
    this.source = source;
    this.byId = new Map(rules.map((rule) => [rule.id, rule]));
  }

  decide(action: JudgedAction, steps?: Steps): Verdict {
    return this.judge(action, listTags(action, this.large), steps);
  }

  /** Decides several operations that belong together; more than ten have the risk `batch`, each of them. */
  decideBatch(actions: readonly JudgedAction[]): BatchVerdict {
    const own: readonly RiskTag[] = actions.length >= BATCH ? ["batch"] : [];
    const verdicts = actions.map((action) => this.judge(action, [...listTags(action, this.large), ...own], undefined));
    return { decision: strictest(verdicts)?.decision ?? "allow", tags: [...new Set(verdicts.flatMap(({ tags }) => tags))], verdicts };
  }

  /** What a remembered answer is tied to: the rule as it is written, and whose it is. Undefined for ids that are no rule of the user. */
  fingerprint(ruleId: string): string | undefined {
    const rule = this.byId.get(ruleId);
    return rule === undefined ? undefined : hash("sha256", JSON.stringify([this.source, Object.entries(rule).toSorted(([a], [b]) => (a < b ? -1 : 1))]));
  }

  private judge(action: JudgedAction, tags: readonly RiskTag[], steps: Steps | undefined): Verdict {
    const { target } = action;
    const moves = action.intent === "move" || action.intent === "rename";
    const destination = moves ? action.destination : undefined;
    if (!isWellPlaced(target) || (moves && !isWellPlaced(destination))) return { decision: "deny", ruleId: `${INVARIANT_PREFIX}outside-roots`, tags, reason: "the path lies in no granted folder" };
    if (destination !== undefined && destination.root !== target.root) return { decision: "deny", ruleId: `${INVARIANT_PREFIX}cross-root`, tags, reason: "nothing is moved from one granted folder into another" };
    const asked = this.askRules({ ...action, target, destination }, tags, steps);
    const [invariant] = judgeInvariants(tags);
    if (asked === undefined) return invariant === undefined ? { decision: "allow", ruleId: NO_RULE_ID, tags, reason: "no rule is about it, and the grant gives it" } : confirmInvariant(invariant, tags);
    // An own rule that allows never takes the place of the question.
    return asked.decision === "allow" && invariant !== undefined ? confirmInvariant(invariant, tags) : asked;
  }

  private askRules(action: JudgedAction & { target: JudgedPath }, tags: readonly RiskTag[], steps: Steps | undefined): Verdict | undefined {
    const { target, destination, size } = action;
    const from = toRulePath(target);
    const verdicts = this.listFacets(action, from, steps).flatMap(({ intent, place }): Verdict[] => {
      const rule = this.rules.find(place, { intent, size, tags });
      return rule === undefined ? [] : [{ decision: rule.action, ruleId: rule.id, tags, reason: describeRule(rule, intent, action.intent) }];
    });
    const lifted = destination === undefined || action.directory === false ? undefined : this.rules.findEvaded(from, toRulePath(destination), steps);
    if (lifted !== undefined) verdicts.push({ decision: lifted.action, ruleId: lifted.id, tags, reason: `rule ${lifted.id} would not hold any more for what lies below` });
    return strictest(verdicts);
  }

  private listFacets({ intent, target, destination }: JudgedAction & { target: JudgedPath }, from: RulePath, steps: Steps | undefined): Facet[] {
    const place = this.rules.locate(from, { steps });
    const own: Facet = { intent, place };
    // A write to a path without a file makes one.
    if (intent === "write") return target.exists ? [own] : [own, { intent: "create", place }];
    if (destination === undefined) return [own];
    const end = this.rules.locate(toRulePath(destination), { steps });
    return [own, { intent: "read", place }, { intent: "delete", place }, { intent, place: end }, { intent: destination.exists ? "write" : "create", place: end }];
  }
}

function confirmInvariant({ id, reason }: Invariant, tags: readonly RiskTag[]): Verdict {
  return { decision: "confirm", ruleId: id, tags, reason };
}

/** The first of the strictest. */
function strictest(verdicts: readonly Verdict[]): Verdict | undefined {
  return verdicts.reduce<Verdict | undefined>((found, verdict) => (found === undefined || RANK[verdict.decision] > RANK[found.decision] ? verdict : found), undefined);
}

function describeRule({ id, action, path }: SandboxRuleText, facet: Intent, intent: Intent): string {
  const does = { allow: "allows", deny: "denies", confirm: "asks about" }[action];
  return `rule ${id} ${does} ${facet === intent ? intent : `${facet}, which ${intent} does as well`}${path === undefined ? "" : ` for ${quotePath(path)}`}`;
}

function toRulePath({ relative, absolute, folding }: JudgedPath): RulePath {
  return { relative: split(relative), absolute: split(absolute), folding };
}

function split(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}
