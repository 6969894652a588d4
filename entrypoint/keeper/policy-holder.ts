import { type BoxPolicy, loadBoxPolicy } from "../../policy/box-policy.ts";
import { ConfigError, type Complaint } from "../../policy/errors.ts";
import type { ListTexts, PolicyDocument } from "../../policy/policy-document.ts";
import { renderRule } from "../../policy/policy.ts";

/** A policy with what it was made of; `version` counts the policies of a box, from 1. */
export type HeldPolicy = { version: number; since: number; document: PolicyDocument; box: BoxPolicy };

export type Built = { ok: true; policy: HeldPolicy } | { ok: false; complaints: readonly Complaint[] };

/** Builds a policy without putting it in force; mistakes of the document are an answer, not an error. */
export async function buildPolicy(document: PolicyDocument, lists: ListTexts, version: number): Promise<Built> {
  try {
    const now = Date.now();
    return { ok: true, policy: { version, since: now, document, box: await loadBoxPolicy({ document, lists, now }) } };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { ok: false, complaints: error.complaints };
  }
}

/** What of a running box no new policy changes: the rules themselves were made at the start. */
export function refuseFixed(present: PolicyDocument, next: PolicyDocument): Complaint[] {
  return (["ssh", "report"] as const)
    .filter((key) => present[key] !== next[key])
    .map((key) => ({ what: `network.${key} cannot change while the box runs`, expected: `${key} = ${String(present[key])}, as at its start`, fix: "start the box again" }));
}

/** The rules that the second policy has beyond the first, and those that it lacks, as a user reads them. */
export function compareRules(before: BoxPolicy, after: BoxPolicy): { added: string[]; removed: string[] } {
  const [old, fresh] = [renderRules(before), renderRules(after)];
  return { added: [...fresh].filter((text) => !old.has(text)), removed: [...old].filter((text) => !fresh.has(text)) };
}

function renderRules({ policy }: BoxPolicy): Set<string> {
  return new Set(policy.rules.map((rule) => renderRule(rule)));
}
