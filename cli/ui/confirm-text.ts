import { quotePath } from "../../policy/parsed.ts";
import type { Prompt, Scope } from "../../sandbox/confirmation.ts";

/** Longer paths are shown by their ends: one that fills the screen would push the question off it. */
const MAX_SHOWN = 600;

/** What is asked, one thing a line; nothing in it can end a line or steer a terminal. */
export function describePrompt({ intent, path, destination, size, verdict, sessionId, taskId }: Omit<Prompt, "id" | "root">): string[] {
  return [
    `${intent} ${showPath(path)}`,
    ...(destination === undefined ? [] : [`to ${showPath(destination)}`]),
    ...(size === undefined ? [] : [`${size} bytes`]),
    `asked by ${flatten(verdict.ruleId)}: ${flatten(verdict.reason)}`,
    ...(verdict.tags.length === 0 ? [] : [`risks: ${verdict.tags.join(", ")}`]),
    `session ${flatten(sessionId)}, task ${flatten(taskId)}`,
  ];
}

/** A path in quotes, with everything unseen escaped. */
export function showPath(path: string): string {
  if (path.length <= MAX_SHOWN) return quotePath(path);
  const half = MAX_SHOWN / 2;
  return `${quotePath(path.slice(0, half))} … ${path.length - MAX_SHOWN} characters … ${quotePath(path.slice(-half))}`;
}

/** Words of a rule on one line. */
export function flatten(text: string): string {
  return quotePath(text).slice(1, -1);
}

/** A yes that is offered: the word to type (its first letter is enough), and for how long it holds. */
export type Choice = { word: string; scope: Scope; says: string };

const SAYS: Readonly<Record<Scope, string>> = { once: "this once", session: "for whatever this rule asks again in this session", rule: "for this rule from now on" };

/** The yeses of a session's own question. */
export function listChoices(scopes: readonly Scope[]): Choice[] {
  return scopes.map((scope) => ({ word: { once: "yes", session: "session", rule: "always" }[scope], scope, says: SAYS[scope] }));
}

/** The one yes of `confirm approve`, whose options have said for how long. */
export function makeOnlyChoice(scope: Scope): Choice[] {
  return [{ word: "yes", scope, says: SAYS[scope] }];
}
