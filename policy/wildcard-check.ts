import { quote, refused, type Refusal } from "./parsed.ts";
import { wildcardSuffix, type Pattern } from "./pattern.ts";

/** Answers whether a name is a public suffix. */
export type PublicSuffixTest = (name: string) => boolean;

/**
 * Loads the public suffix test, but only where one of the texts holds a wildcard at all: the table
 * costs about 10 ms, and the shipped lists need none of it at the start of a box.
 */
export async function loadPublicSuffixTest(texts: Iterable<string>): Promise<PublicSuffixTest> {
  for (const text of texts) {
    if (!text.includes("*")) continue;
    const { isPublicSuffix } = await import("./public-suffix.ts");
    return isPublicSuffix;
  }
  // No text holds a wildcard; should one turn up all the same, it is refused.
  return () => true;
}

/** Refuses a wildcard below a public suffix; undefined means that the pattern is fine. */
export function refuseOpenWildcard(pattern: Pattern, isPublicSuffix: PublicSuffixTest): Refusal | undefined {
  const suffix = wildcardSuffix(pattern);
  if (suffix === undefined || !isPublicSuffix(suffix)) return undefined;
  return refused(
    `${quote(`*.${suffix}`)} opens every domain registered below ${suffix}`,
    "a wildcard below one registered domain",
    `name the domain, such as *.example.${suffix}`,
  );
}
