import { parseRange, rangeContains, type Range } from "./address.ts";
import type { Host } from "./host-name.ts";

/** The blocks of this machine itself (RFC 1122, RFC 4291). */
export const LOOPBACK_RANGES: readonly Range[] = ["127.0.0.0/8", "::1/128"].map((text) => {
  const range = parseRange(text);
  if (!range.ok) throw new Error(range.complaint.what);
  return range.value;
});

/** Tells whether a host is this machine by its address or by the one name that always means it (RFC 6761). */
export function isLoopback(host: Host): boolean {
  if (host.kind === "name") return host.name === "localhost" || host.name.endsWith(".localhost");
  return LOOPBACK_RANGES.some((range) => rangeContains(range, host.address));
}
