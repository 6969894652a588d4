/** One block that is not somewhere on the internet, with the name the registry gives it. */
export type SpecialRange = { range: string; name: string; registry: Registry };

type Registry = "iana-ipv4-special" | "iana-ipv6-special" | "iana-multicast" | "rfc" | "cloud-vendor";

/**
 * Where the rows come from: the IANA special-purpose registries for IPv4 and IPv6 (state of
 * 2024-10-22), the multicast registries, one RFC that took a block out of use, and metadata
 * addresses of cloud vendors. Left out on purpose: rows that IANA marks as globally reachable
 * (AS112, AMT); blocks whose addresses are judged by the IPv4 address inside (6to4, NAT64, Teredo).
 */
export const SPECIAL_RANGES_DATE = "2024-10-22";

// The first match names the block, so smaller blocks stand before those that hold them.
export const SPECIAL_RANGES: readonly SpecialRange[] = [
  { range: "169.254.169.254", name: "cloud metadata", registry: "cloud-vendor" },
  { range: "169.254.170.2", name: "cloud metadata", registry: "cloud-vendor" },
  { range: "100.100.100.200", name: "cloud metadata", registry: "cloud-vendor" },
  // Answers with the machine's secrets although it looks like an ordinary public address.
  { range: "168.63.129.16", name: "cloud metadata", registry: "cloud-vendor" },
  { range: "fd00:ec2::254", name: "cloud metadata", registry: "cloud-vendor" },
  { range: "0.0.0.0/8", name: "this network", registry: "iana-ipv4-special" },
  { range: "10.0.0.0/8", name: "private use", registry: "iana-ipv4-special" },
  { range: "100.64.0.0/10", name: "shared address space (CGNAT)", registry: "iana-ipv4-special" },
  { range: "127.0.0.0/8", name: "loopback", registry: "iana-ipv4-special" },
  { range: "169.254.0.0/16", name: "link-local", registry: "iana-ipv4-special" },
  { range: "172.16.0.0/12", name: "private use", registry: "iana-ipv4-special" },
  // Holds two anycast addresses marked reachable, but they lead to the nearest router: refused as well.
  { range: "192.0.0.0/24", name: "IETF protocol assignments", registry: "iana-ipv4-special" },
  { range: "192.0.2.0/24", name: "documentation", registry: "iana-ipv4-special" },
  { range: "192.88.99.0/24", name: "deprecated 6to4 relay anycast", registry: "iana-ipv4-special" },
  { range: "192.168.0.0/16", name: "private use", registry: "iana-ipv4-special" },
  { range: "198.18.0.0/15", name: "benchmarking", registry: "iana-ipv4-special" },
  { range: "198.51.100.0/24", name: "documentation", registry: "iana-ipv4-special" },
  { range: "203.0.113.0/24", name: "documentation", registry: "iana-ipv4-special" },
  { range: "224.0.0.0/4", name: "multicast", registry: "iana-multicast" },
  { range: "255.255.255.255", name: "limited broadcast", registry: "iana-ipv4-special" },
  { range: "240.0.0.0/4", name: "reserved", registry: "iana-ipv4-special" },
  { range: "::", name: "unspecified address", registry: "iana-ipv6-special" },
  { range: "::1", name: "loopback", registry: "iana-ipv6-special" },
  // RFC 8215: for translators of one site, so what it leads to is local whatever IPv4 address it holds.
  { range: "64:ff9b:1::/48", name: "local-use IPv4/IPv6 translation", registry: "iana-ipv6-special" },
  { range: "100::/64", name: "discard-only", registry: "iana-ipv6-special" },
  { range: "100:0:0:1::/64", name: "dummy prefix", registry: "iana-ipv6-special" },
  { range: "2001:2::/48", name: "benchmarking", registry: "iana-ipv6-special" },
  { range: "2001:10::/28", name: "deprecated ORCHID", registry: "iana-ipv6-special" },
  { range: "2001:20::/28", name: "ORCHIDv2", registry: "iana-ipv6-special" },
  { range: "2001:db8::/32", name: "documentation", registry: "iana-ipv6-special" },
  { range: "2001::/23", name: "IETF protocol assignments", registry: "iana-ipv6-special" },
  { range: "3fff::/20", name: "documentation", registry: "iana-ipv6-special" },
  { range: "5f00::/16", name: "segment routing identifiers", registry: "iana-ipv6-special" },
  { range: "fc00::/7", name: "unique local", registry: "iana-ipv6-special" },
  { range: "fe80::/10", name: "link-local", registry: "iana-ipv6-special" },
  { range: "fec0::/10", name: "deprecated site-local", registry: "rfc" },
  { range: "ff00::/8", name: "multicast", registry: "iana-multicast" },
];
