import { addressFromValue, parseRange, rangesOverlap, type Address, type Family, type Range } from "./address.ts";
import { SPECIAL_RANGES, type SpecialRange } from "./special-ranges.ts";

/** Whether an address is somewhere on the internet or has a special purpose; `range` is the block that says so. */
export type AddressClass = { kind: "public" } | { kind: "special"; name: string; range: string };

type Known = SpecialRange & { block: Range; last: bigint };

let knownRanges: readonly Known[] | undefined;

/**
 * Classifies an address by the special-purpose registries. IPv4 inside IPv6 is judged by the IPv4
 * address, because a gateway on the way would deliver there: 6to4, NAT64, Teredo (server and client)
 * and ISATAP. IPv6 outside the global unicast block is special even where no registry row names it.
 */
export function classifyAddress(address: Address): AddressClass {
  for (const embedded of embeddedIpv4(address)) {
    const inner = classifyAddress(embedded.address);
    if (inner.kind === "special") {
      return { ...inner, name: `${inner.name} (${embedded.address.text} inside ${embedded.form})` };
    }
    // A public IPv4 address decides the case, except in ISATAP, where the IPv6 prefix counts as well.
    if (embedded.decides) return inner;
  }
  const { family, value } = address;
  const match = specialRanges().find(({ block, last }) => block.family === family && block.base <= value && value <= last);
  if (match !== undefined) return { kind: "special", name: match.name, range: match.range };
  if (family === 6 && value >> 125n !== 1n) {
    return { kind: "special", name: "not global unicast", range: "outside 2000::/3" };
  }
  return { kind: "public" };
}

// What no name leads to, a private one neither: the box itself, the machine's secrets, many receivers or none.
const NEVER_PINNED: ReadonlySet<string> = new Set(["cloud metadata", "loopback", "this network", "unspecified address", "multicast", "limited broadcast", "reserved"]);

/** Tells whether a private host may lead to an address of this class; loopback, metadata and their like have to be listed themselves. */
export function isPinnable(addressClass: AddressClass): boolean {
  if (addressClass.kind === "public") return true;
  return !SPECIAL_RANGES.some(({ name, range }) => range === addressClass.range && NEVER_PINNED.has(name));
}

/** Finds the special-purpose blocks that a range touches; an empty list means that it is wholly public. */
export function specialRangesIn(range: Range): readonly (SpecialRange & { block: Range })[] {
  return specialRanges().filter(({ block }) => rangesOverlap(block, range));
}

function specialRanges(): readonly Known[] {
  knownRanges ??= SPECIAL_RANGES.map((entry) => {
    const block = parseRange(entry.range);
    if (!block.ok) throw new Error(`special-ranges.ts: ${block.complaint.what}`);
    const { family, base, prefix } = block.value;
    return { ...entry, block: block.value, last: base + (1n << BigInt((family === 4 ? 32 : 128) - prefix)) - 1n };
  });
  return knownRanges;
}

type Embedded = { form: string; address: Address; decides: boolean };

function embeddedIpv4({ family, value }: { family: Family; value: bigint }): readonly Embedded[] {
  if (family === 4) return [];
  const at = (shift: bigint): Address => addressFromValue(4, (value >> shift) & 0xffff_ffffn);
  const found: Embedded[] = [];
  if (value >> 112n === 0x2002n) found.push({ form: "6to4", address: at(80n), decides: true });
  if (value >> 32n === 0x0064_ff9b_0000_0000_0000_0000n) found.push({ form: "NAT64", address: at(0n), decides: true });
  if (value >> 96n === 0x2001_0000n) {
    // RFC 4380: the server in plain, the client with all bits inverted.
    const client = addressFromValue(4, ~value & 0xffff_ffffn);
    found.push({ form: "Teredo", address: at(64n), decides: false }, { form: "Teredo", address: client, decides: true });
  }
  // RFC 5214: interface identifier 0:5efe or 200:5efe, then the IPv4 address.
  if (((value >> 32n) & 0xfdff_ffffn) === 0x0000_5efen) found.push({ form: "ISATAP", address: at(0n), decides: false });
  // RFC 4291: ::a.b.c.d, long deprecated. :: and ::1 have rows of their own.
  if (value >> 32n === 0n && value > 1n) found.push({ form: "an IPv4-compatible address", address: at(0n), decides: false });
  return found;
}
