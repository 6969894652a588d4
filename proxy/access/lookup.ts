import type { Address } from "../../policy/address.ts";

/** Where a name leads, and until when (Unix ms) that may be taken for granted; or one sentence why nobody knows. */
export type Found = { ok: true; addresses: readonly Address[]; freshUntil: number } | { ok: false; why: string };

/** Looks up a canonical name that the policy lets through: at once where the answer is held. */
export type Lookup = (name: string) => Found | Promise<Found>;
