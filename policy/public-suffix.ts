import { getPublicSuffix } from "tldts";

/**
 * Tells whether a name is a public suffix, so that a wildcard below it would open the domains of
 * strangers (`co.uk`, `com.au`). Only the ICANN section counts: `*.github.io` is a question of trust,
 * not of form. This module loads a large table; reach it through `loadWildcardCheck`.
 */
export function isPublicSuffix(name: string): boolean {
  return getPublicSuffix(name, { allowPrivateDomains: false }) === name;
}
