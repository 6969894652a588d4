import type { DnsBehaviour } from "./control-schema.ts";

/** Suffix of the names that exist only in the lab. */
export const LAB_SUFFIX = "lab-names.example";

/** Destinations whose packets vanish, as a host that is down. */
export const SILENT = { v4: "93.184.223.66", v6: "2606:2800:220:ff::66" } as const;

/** Destinations that reset every TCP connection. */
export const RESETTING = { v4: "93.184.223.67", v6: "2606:2800:220:ff::67" } as const;

/** Public resolvers that the lab plays, so that refusing them is the firewall's work and not an absence. */
export const FOREIGN_RESOLVERS = [
  "8.8.8.8",
  "8.8.4.4",
  "1.1.1.1",
  "9.9.9.9",
  "2001:4860:4860::8888",
  "2606:4700:4700::1111",
  "2620:fe::fe",
] as const;

/** Destinations that are no names of an allowlist but answer UDP as well. */
export const OTHER_UDP_ADDRESSES = [
  "198.51.100.1",
  "169.254.169.254",
  "192.168.1.1",
  "2001:db8::1",
  "fd00:ec2::254",
] as const;

const shared = both("93.184.216.5", "2606:2800:220:1::5");

/** Names with an address of their own kind; the rest of the zone takes addresses from the pool. */
export const SPECIAL_NAMES: Readonly<Record<string, DnsBehaviour>> = {
  "github.com": both("140.82.112.3", "2606:50c0:8000::3"),
  "api.github.com": both("140.82.112.5", "2606:50c0:8000::5"),
  "codeload.github.com": both("140.82.112.9", "2606:50c0:8000::9"),
  "gist.github.com": both("140.82.121.4", "2606:50c0:8000::44"),
  "ssh.github.com": both("140.82.112.36", "2606:50c0:8000::36"),
  "raw.githubusercontent.com": both("185.199.108.133", "2606:50c0:8000::133"),
  "objects.githubusercontent.com": both("185.199.109.133", "2606:50c0:8001::133"),
  "altssh.gitlab.com": both("93.184.216.7", "2606:2800:220:1::7"),

  "dns.google": { a: ["8.8.8.8", "8.8.4.4"], aaaa: ["2001:4860:4860::8888"] },
  "one.one.one.one": both("1.1.1.1", "2606:4700:4700::1111"),
  "cloudflare-dns.com": both("104.16.248.249", "2606:4700::6810:f8f9"),
  "example.com": both("93.184.220.34", "2606:2800:220:3::34"),
  "www.example.com": { cname: "example.com" },
  "example.net": both("93.184.220.35", "2606:2800:220:3::35"),
  "example.org": both("93.184.220.36", "2606:2800:220:3::36"),
  "evil.example.net": both("93.184.220.66", "2606:2800:220:3::66"),
  "*.evil.example.net": { ...both("93.184.220.67", "2606:2800:220:3::67"), txt: ["from the lab"] },
  "pastebin.com": both("93.184.220.68", "2606:2800:220:3::68"),
  "metadata.google.internal": both("169.254.169.254", "fd00:ec2::254"),

  ...labNames({
    "shared-a": shared,
    "shared-b": shared,
    chain: { cname: `chain-2.${LAB_SUFFIX}` },
    "chain-2": { cname: `chain-3.${LAB_SUFFIX}` },
    "chain-3": { cname: `chain-end.${LAB_SUFFIX}` },
    "chain-end": both("93.184.216.8", "2606:2800:220:1::8"),
    "cname-loop": { cname: `cname-loop.${LAB_SUFFIX}` },
    // A target whose name reads like an address: `dig +short` prints it as if it were one.
    "literal-alias": { cname: "93.184.216.6" },
    duplicate: {
      a: ["93.184.216.9", "93.184.216.9", "93.184.216.9"],
      aaaa: ["2606:2800:220:1::9", "2606:2800:220:1::9"],
    },
    rotating: {
      a: ["93.184.217.1", "93.184.217.2", "93.184.217.3"],
      aaaa: ["2606:2800:220:2::1", "2606:2800:220:2::2", "2606:2800:220:2::3"],
      ttl: 5,
      rotate: "order",
    },
    v4only: { a: ["93.184.217.4"] },
    v6only: { aaaa: ["2606:2800:220:2::6"] },
    private: both("10.1.2.3", "fd12:3456::1"),
    loopback: both("127.0.0.1", "::1"),
    metadata: both("169.254.169.254", "fd00:ec2::254"),
    mapped: { aaaa: ["::ffff:10.1.2.3"] },
    silent: both(SILENT.v4, SILENT.v6),
    reset: both(RESETTING.v4, RESETTING.v6),
    "no-dns": { silent: true },
    servfail: { rcode: "SERVFAIL" },
    "large-cert": both("93.184.217.10", "2606:2800:220:2::10"),
    ssh: both("93.184.217.22", "2606:2800:220:2::22"),
    "*.wild": both("93.184.217.30", "2606:2800:220:2::30"),
  }),
  "93.184.216.6": both("93.184.216.6", "2606:2800:220:1::6"),
};

/** The lab's Debian archive. Its other package servers are known by the names that the allowlists give them. */
export const ARCHIVE_HOST = `archive.${LAB_SUFFIX}`;

/** Names whose port 443 speaks SSH. */
export const SSH_ON_443 = ["ssh.github.com", "altssh.gitlab.com"] as const;

function both(v4: string, v6: string): { a: string[]; aaaa: string[] } {
  return { a: [v4], aaaa: [v6] };
}

function labNames(records: Record<string, DnsBehaviour>): Record<string, DnsBehaviour> {
  return Object.fromEntries(Object.entries(records).map(([label, record]) => [`${label}.${LAB_SUFFIX}`, record]));
}
