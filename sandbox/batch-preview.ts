import { FileError, GuardError } from "./errors.ts";
import type { JudgedAction } from "./policy-engine.ts";
import type { Intent, Verdict } from "./request.ts";

/** What an operation would be, and where nothing can come of it, why. */
export type Preview = { action: JudgedAction; refused?: Pick<Verdict, "decision" | "ruleId" | "reason"> };

/** Describes an operation, or says why nothing can come of it; a mistake in the request is thrown. */
export function guardPreview(intent: Intent, describe: () => JudgedAction): Preview {
  try {
    return { action: describe() };
  } catch (error) {
    if (error instanceof GuardError) return { action: { intent, target: undefined }, refused: { decision: "deny", ruleId: error.rule, reason: error.message } };
    if (error instanceof FileError) return { action: { intent, target: undefined }, refused: { decision: "deny", ruleId: `file:${error.code}`, reason: error.message } };
    throw error;
  }
}

/** The decision about operations that belong together. */
export function findStrictest(verdicts: readonly Verdict[]): Verdict["decision"] {
  return (["deny", "confirm"] as const).find((decision) => verdicts.some((verdict) => verdict.decision === decision)) ?? "allow";
}
