import { addressFromValue } from "./address.ts";
import { classifyAddress, specialRangesIn } from "./address-class.ts";
import { renderEntry, type Entry } from "./entry.ts";

/** Says what an entry opens that is not on the internet, since a literal entry opens it all the same; undefined for all others. */
export function warnSpecial(entry: Entry): string | undefined {
  if (entry.target.kind !== "range") return undefined;
  const { range } = entry.target;
  const single = range.prefix === (range.family === 4 ? 32 : 128) ? classifyAddress(addressFromValue(range.family, range.base)) : undefined;
  const names = single === undefined ? specialRangesIn(range).map(({ name }) => name) : single.kind === "special" ? [single.name] : [];
  const [first] = names;
  if (first === undefined) return undefined;
  const text = renderEntry(entry);
  if (names.some((name) => name.startsWith("cloud metadata"))) return `${text} opens the cloud's metadata service, which hands out the machine's credentials to whoever asks`;
  return `${text} opens addresses that are not on the internet (${[...new Set(names)].slice(0, 3).join(", ")}): whatever listens there can be reached`;
}
