import { addressFromValue } from "./address.ts";
import type { JudgeCritical } from "./critical-service.ts";
import { decide } from "./decide.ts";
import { namesToResolve, renderOrigin, WILDCARD_PROBE } from "./effective-list.ts";
import type { Host } from "./host-name.ts";
import { quote } from "./parsed.ts";
import { renderRule, type Policy, type PolicyRule } from "./policy.ts";

/**
 * The names to resolve at the start: those of every allow rule, wildcards by their apex and a probe, as
 * far as the policy answers them at all. Private names are not among them, they are pinned.
 */
export function namesToProbe(policy: Policy): readonly string[] {
  const names = new Set<string>();
  for (const { action, match } of policy.rules) {
    if (action !== "allow" || match.kind !== "pattern") continue;
    for (const name of namesToResolve({ target: match })) if (!policy.privatePorts.has(name)) names.add(name);
  }
  return [...names].filter((name) => answersName(policy, name));
}

/** Tells whether the box's resolver may answer this canonical name. */
export function answersName(policy: Policy, name: string): boolean {
  return decide(policy, { host: { kind: "name", name } }).action === "allow";
}

/**
 * Tells whether nothing can be reached at all, because there is no allow rule or earlier rules deny what
 * each opens. Where globs deny only a part of a wildcard it may say so too early, which closes the box.
 */
export function opensNothing(policy: Policy): boolean {
  return !policy.rules.some((rule) => {
    if (rule.action !== "allow") return false;
    return samplesOf(rule).some((host) => decide(policy, { host }).action === "allow");
  });
}

/** Judges critical services by the policy: the name must be allowed on its port. `list` is where a missing one is added. */
export function judgeByPolicy(policy: Policy, { list, critical }: { list: string; critical: string }): JudgeCritical {
  return (name, port) => {
    const { action, rule } = decide(policy, { host: { kind: "name", name }, port });
    if (action === "allow") return undefined;
    const entry = port === 443 ? name : `${name}:${port}`;
    if (rule === undefined) return { why: "is not in the effective list", fix: `add ${quote(entry)} to ${list}, or remove it from ${critical}` };
    const where = rule.origins.map((origin) => renderOrigin(origin)).join(", ");
    if (rule.tier === "block") return { why: `was removed by the block ${quote(rule.text)} (${where})`, fix: `lift the block, or remove the name from ${critical}` };
    return { why: `is denied by the rule ${quote(renderRule(rule))} (${where})`, fix: `allow it before that rule, or remove the name from ${critical}` };
  };
}

function samplesOf({ match }: PolicyRule): readonly Host[] {
  if (match.kind === "range") return [{ kind: "address", address: addressFromValue(match.range.family, match.range.base) }];
  if (match.kind === "glob") return [];
  if (match.pattern.kind === "all") return [{ kind: "name", name: `${WILDCARD_PROBE}.invalid` }];
  return namesToResolve({ target: match }).map((name) => ({ kind: "name", name }));
}
