import ipaddr from "ipaddr.js";
import { parsed, quote, refused, type Parsed } from "./parsed.ts";

export type Family = 4 | 6;

/** One IP address. `text` is canonical (dotted quad, RFC 5952), `value` the same as a number. */
export type Address = { family: Family; value: bigint; text: string };

/** A CIDR block; `base` has no bits below the prefix. A single address has the prefix 32 or 128. */
export type Range = { family: Family; base: bigint; prefix: number; text: string };

const OCTET = "(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])";
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
const IPV6_TAIL = /^[0-9a-f:]*:(?<quad>[0-9.]+)$/;
const MAPPED_PREFIX = 0xffffn;

/** The number of bits of an address: 32 or 128. */
function addressBits(family: Family): number {
  return family === 4 ? 32 : 128;
}

/**
 * Parses an address in plain notation: four decimal numbers without leading zeros, or IPv6 without
 * brackets and zone. Octal, hexadecimal and shortened IPv4 (`010.0.0.1`, `0x7f.1`, `127.1`) are
 * refused, because programs disagree about what they mean. An IPv4-mapped address
 * (`::ffff:192.0.2.1`) becomes the IPv4 address: the kernel sends IPv4 packets for it.
 */
export function parseAddress(text: string): Parsed<Address> {
  const lower = text.toLowerCase();
  // Without leading zeros there is one way to write it.
  if (IPV4.test(lower)) return parsed({ family: 4, value: ipv4Value(lower), text: lower });
  const value = lower.includes(":") ? ipv6Value(lower) : undefined;
  if (value === undefined) {
    return refused(`${quote(text)} is not an IP address`, "four decimal numbers such as 192.0.2.1, or IPv6 such as 2001:db8::1");
  }
  if (value >> 32n === MAPPED_PREFIX) return parsed(addressFromValue(4, value & 0xffff_ffffn));
  return parsed(addressFromValue(6, value));
}

/** Makes an address of a number; the caller guarantees that it fits the family. */
export function addressFromValue(family: Family, value: bigint): Address {
  return { family, value, text: family === 4 ? renderIpv4(value) : renderIpv6(value) };
}

/** Parses `address` or `address/prefix`. Bits below the prefix are refused with the corrected block. */
export function parseRange(text: string): Parsed<Range> {
  const slash = text.indexOf("/");
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (!address.ok) return address;
  if (slash < 0) return parsed(singleRange(address.value));
  const { family, value } = address.value;
  const bits = addressBits(family);
  const digits = text.slice(slash + 1);
  const prefix = /^(?:0|[1-9][0-9]{0,2})$/.test(digits) ? Number(digits) : Number.NaN;
  if (family === 4 && text.includes(":")) {
    const fix = prefix >= 96 && prefix <= 128 ? rangeOf(4, value, prefix - 96).text : `${address.value.text}/32`;
    return refused(`${quote(text)} is an IPv4 block written as IPv6`, "plain IPv4 notation", `write ${fix}`);
  }
  if (!(prefix <= bits)) {
    return refused(`${quote(text)} has no valid prefix length`, `a number from 0 to ${bits} after the slash`, `write ${address.value.text}/${bits}`);
  }
  const range = rangeOf(family, value, prefix);
  if (range.base !== value) {
    return refused(`${quote(text)} has bits set below its prefix`, "the first address of the block", `write ${range.text}, or ${address.value.text} for the one address`);
  }
  return parsed(range);
}

/** Makes the block that holds this one address. */
export function singleRange({ family, value, text }: Address): Range {
  return { family, base: value, prefix: addressBits(family), text };
}

/** Makes the block of this prefix length that holds `value`. */
export function rangeOf(family: Family, value: bigint, prefix: number): Range {
  const bits = addressBits(family);
  const base = truncate(family, value, prefix);
  const { text } = addressFromValue(family, base);
  return { family, base, prefix, text: prefix === bits ? text : `${text}/${prefix}` };
}

/** Clears all bits of `value` below the prefix. */
export function truncate(family: Family, value: bigint, prefix: number): bigint {
  const shift = BigInt(addressBits(family) - prefix);
  return (value >> shift) << shift;
}

/** Tells whether the address lies in the range. */
export function rangeContains(range: Range, address: Pick<Address, "family" | "value">): boolean {
  return range.family === address.family && truncate(range.family, address.value, range.prefix) === range.base;
}

/** Tells whether every address of `inner` lies in `outer`. */
export function rangeCovers(outer: Range, inner: Range): boolean {
  return outer.prefix <= inner.prefix && rangeContains(outer, { family: inner.family, value: inner.base });
}

/** Tells whether two ranges share an address; CIDR blocks do so only when one holds the other. */
export function rangesOverlap(a: Range, b: Range): boolean {
  return rangeCovers(a, b) || rangeCovers(b, a);
}

function ipv4Value(text: string): bigint {
  return BigInt(text.split(".").reduce((value, octet) => value * 256 + Number(octet), 0));
}

function ipv6Value(text: string): bigint | undefined {
  // ipaddr.js takes octal octets in a dotted tail and reads `::192.0.2.1` as the mapped address, so the
  // tail is checked and turned into two groups first.
  const tail = IPV6_TAIL.exec(text)?.groups?.["quad"] ?? "";
  const dotted = tail.includes(".");
  if (dotted && !IPV4.test(tail)) return undefined;
  const groups = dotted ? text.slice(0, -tail.length) + hexGroups(ipv4Value(tail)) : text;
  if (!/^[0-9a-f:]+$/.test(groups) || !ipaddr.IPv6.isValid(groups)) return undefined;
  return ipaddr.IPv6.parse(groups).parts.reduce((value, part) => (value << 16n) | BigInt(part), 0n);
}

function hexGroups(value: bigint): string {
  return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
}

function renderIpv4(value: bigint): string {
  const number = Number(value);
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff).join(".");
}

function renderIpv6(value: bigint): string {
  // One conversion of the large number instead of eight.
  const digits = value.toString(16).padStart(32, "0");
  const parts = Array.from({ length: 8 }, (_, index) => Number.parseInt(digits.slice(4 * index, 4 * index + 4), 16));
  return new ipaddr.IPv6(parts).toRFC5952String();
}
