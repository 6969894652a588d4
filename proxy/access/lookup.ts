import type { Address } from "../../policy/address.ts";
import type { Decision } from "../../policy/decide.ts";

/**
 * Where a name leads, and until when (Unix ms) that may be taken for granted; or one sentence why nobody knows. `refused`
 * says that somebody knows, and that the policy lets none of it through.
 */
export type Found = { ok: true; addresses: readonly Address[]; freshUntil: number } | { ok: false; why: string; refused?: Pick<Decision, "reason" | "rule" | "detail"> | undefined };

/** Looks up a canonical name that the policy lets through: at once where the answer is held. */
export type Lookup = (name: string) => Found | Promise<Found>;
