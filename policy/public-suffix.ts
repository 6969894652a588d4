import { getDomain, getPublicSuffix } from "tldts";

/**
 * Tells whether a name is a public suffix, so that a wildcard below it would open the domains of
 * strangers (`co.uk`, `com.au`). Only the ICANN section counts: `*.github.io` is a question of trust,
 * not of form. This module loads a large table; reach it through `loadWildcardCheck`.
 */
export function isPublicSuffix(name: string): boolean {
  return getPublicSuffix(name, { allowPrivateDomains: false }) === name;
}

/**
 * The domain that somebody registered: `example.co.uk` for `a.b.example.co.uk`, undefined for a public suffix. Here
 * the private section counts as well, so that `a.github.io` is a domain of its own: its neighbours are strangers.
 */
export function registrableDomain(name: string): string | undefined {
  return getDomain(name, { allowPrivateDomains: true }) ?? undefined;
}
