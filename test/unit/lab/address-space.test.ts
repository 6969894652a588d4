import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { allBut } from "../../lab/address-space.ts";

const holders = (prefixes: readonly string[], address: ipaddr.IPv4 | ipaddr.IPv6) =>
  prefixes.filter((prefix) => {
    const [base, bits] = ipaddr.parseCIDR(prefix);
    return base.kind() === address.kind() && address.match(base, bits);
  });

describe("addresses that the lab claims", () => {
  it("claims every IPv4 address below multicast exactly once, but for the boxes' subnet", () => {
    const prefixes = allBut(4, "172.31.7.0/24");
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xdf_ff_ff_ff }), (number) => {
        const address = ipaddr.fromByteArray([number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255]);
        const own = address.toString().startsWith("172.31.7.");
        expect(holders(prefixes, address)).toHaveLength(own ? 0 : 1);
      }),
    );
  });

  it.each([
    ["leaves out an address of the boxes' IPv4 subnet", 4, "172.31.7.0/24", "172.31.7.9", 0],
    ["claims the neighbour subnet", 4, "172.31.7.0/24", "172.31.6.255", 1],
    ["claims the canary", 4, "172.31.7.0/24", "198.51.100.1", 1],
    ["claims the metadata address", 4, "172.31.7.0/24", "169.254.169.254", 1],
    ["leaves out an address of the boxes' IPv6 subnet", 6, "fd00:1ab::/64", "fd00:1ab::a", 0],
    ["claims a neighbour in the unique local space", 6, "fd00:1ab::/64", "fd00:1ab:0:1::1", 1],
    ["claims global IPv6", 6, "fd00:1ab::/64", "2606:50c0:8000::3", 1],
    ["leaves IPv6 link-local to the kernel", 6, "fd00:1ab::/64", "fe80::1", 0],
  ] as const)("%s", (_, family, subnet, address, count) => {
    expect(holders(allBut(family, subnet), ipaddr.parse(address))).toHaveLength(count);
  });
});
